"""Certificates for a test: good ones from `windlass cert new`, those it refuses to make from the openssl command."""
import hashlib
import os
import ssl
import subprocess
import tempfile

OPENSSL_SETTINGS = """
[ca]
default_ca = this
[this]
new_certs_dir = {folder}
database = {folder}/index
serial = {folder}/serial
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


class Certificates:
    """One authority and its leaves, in a folder of their own."""

    def __init__(self, windlass):
        self.windlass = windlass
        self.folder = tempfile.TemporaryDirectory(prefix="windlass-certificates-")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    @property
    def authority(self):
        return self.path("ca.pem")

    def issue(self, name, *sans):
        """A good one; its alternative names are localhost's unless given."""
        given = [argument for san in sans for argument in ("--san", san)]
        run(self.windlass, "cert", "new", "--out", self.folder.name, "--name", name, *given)
        return name

    def issue_between(self, name, begins, ends):
        """One that is valid between two days, as "20200101"."""
        settings = self.path("openssl.cnf")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(OPENSSL_SETTINGS.format(folder=self.folder.name))
        with open(self.path("index"), "a", encoding="utf-8"):
            pass
        if not os.path.exists(self.path("serial")):
            with open(self.path("serial"), "w", encoding="utf-8") as file:
                file.write("1000\n")
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            self.path(name + ".key"), "-out", self.path(name + ".csr"), "-subj", f"/CN={name}",
            "-addext", f"subjectAltName=DNS:{name}.example")
        run("openssl", "ca", "-batch", "-notext", "-config", settings, "-cert", self.authority, "-keyfile", self.path("ca.key"),
            "-in", self.path(name + ".csr"), "-out", self.path(name + ".pem"),
            "-startdate", begins + "000000Z", "-enddate", ends + "000000Z")
        return name

    def fingerprint(self, name):
        with open(self.path(name + ".pem"), encoding="ascii") as file:
            return hashlib.sha256(ssl.PEM_cert_to_DER_cert(file.read())).hexdigest()

    def private_texts(self):
        """A line out of the middle of every private key: what must be found nowhere."""
        texts = []
        for name in os.listdir(self.folder.name):
            if name.endswith(".key"):
                with open(self.path(name), encoding="ascii") as file:
                    texts.append(file.read().splitlines()[1])
        return texts

    def client(self, name=None, of=None):
        """What a client connects with: trusts this authority, shows the certificate `name` of `of`, this one if not given."""
        context = ssl.create_default_context(cafile=self.authority)
        if name is not None:
            owner = of or self
            context.load_cert_chain(owner.path(name + ".pem"), owner.path(name + ".key"))
        return context
