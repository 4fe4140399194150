"""Session tokens (docs/protocol.md, section 11)."""
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


def milliseconds():
    return int(time.time() * 1000)


class Signer:
    def __init__(self):
        self.keys = {"k1": secrets.token_bytes(32)}

    def sign(self, sid, wid, tenant, gen, lifetime_ms=3600000):
        """TOK-1."""
        claims = {"sid": sid, "wid": wid, "tenant": tenant, "exp": milliseconds() + lifetime_ms, "iat": milliseconds(), "kid": "k1", "gen": gen}
        text = encode(json.dumps(claims, separators=(",", ":")).encode())
        return f"{text}.{self.signature(text)}"

    def signature(self, text):
        return encode(hmac.new(self.keys["k1"], text.encode(), hashlib.sha256).digest())

    def verify(self, token, has):
        """The claims, or None. `has` says whether this mutant leaves a check out."""
        text, _, signature = token.partition(".")
        if not has("token-unsigned") and not hmac.compare_digest(signature, self.signature(text)):  # TOK-4
            return None
        try:
            claims = json.loads(decode(text))
        except ValueError:
            return None
        return claims if isinstance(claims, dict) and claims.get("exp", 0) > milliseconds() else None  # TOK-5
