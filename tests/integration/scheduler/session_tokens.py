"""Session tokens as docs/protocol.md section 11 says, made and spoiled by somebody who knows the signing keys."""
import base64
import hashlib
import hmac
import json
import secrets
import time


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class SigningKey:
    def __init__(self, kid):
        self.kid, self.secret = kid, secrets.token_bytes(32)

    def line(self):
        """As it stands in the key file."""
        return f"{self.kid} {encode(self.secret)}\n"


def claims_of(token):
    return json.loads(decode(token.split(".")[0]))


def sign(claims, key):
    """A token of exactly these claims, in their canonical order."""
    ordered = {name: claims[name] for name in ("sid", "wid", "tenant", "exp", "iat", "kid", "gen")}
    text = encode(json.dumps(ordered, separators=(",", ":")).encode())
    return text + "." + encode(hmac.new(key.secret, text.encode(), hashlib.sha256).digest())


def milliseconds():
    return int(time.time() * 1000)
