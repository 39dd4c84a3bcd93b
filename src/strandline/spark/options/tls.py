"""TLS towards the brokers, from Kafka's ssl.* settings in PEM.

Always true: secrets do not show in a repr. Files are read where the connection is made, so their paths must be right on the
driver and on every executor; PEM texts in the options themselves need no file.
"""

from __future__ import annotations

import dataclasses
import os
import ssl
import tempfile

from strandline.spark.errors import OptionError

JAVA_STORES = (".jks", ".p12", ".pfx", ".pkcs12", ".keystore", ".truststore")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Without a truststore the system's own certificates are trusted; without a keystore the client shows none."""

    truststore_location: str | None = None
    truststore_certificates: str | None = dataclasses.field(default=None, repr=False)
    keystore_location: str | None = None
    certificate_chain: str | None = dataclasses.field(default=None, repr=False)
    key: str | None = dataclasses.field(default=None, repr=False)
    key_password: str | None = dataclasses.field(default=None, repr=False)
    check_host: bool = True

    def __post_init__(self) -> None:
        for name, path in (("truststore", self.truststore_location), ("keystore", self.keystore_location)):
            if path and path.lower().endswith(JAVA_STORES):
                raise OptionError(
                    f"option 'kafka.ssl.{name}.location' is a PEM file, not the Java store '{path}'; "
                    "convert it with keytool -exportcert -rfc or openssl pkcs12"
                )
        if self.truststore_location and self.truststore_certificates:
            raise OptionError(
                "options 'kafka.ssl.truststore.location' and 'kafka.ssl.truststore.certificates' contradict each other; keep one"
            )
        if bool(self.certificate_chain) != bool(self.key):
            raise OptionError(
                "give both options 'kafka.ssl.keystore.certificate.chain' and 'kafka.ssl.keystore.key', or neither"
            )
        if self.keystore_location and self.key:
            raise OptionError(
                "options 'kafka.ssl.keystore.location' and 'kafka.ssl.keystore.key' contradict each other; keep one"
            )

    def context(self) -> ssl.SSLContext:
        """For connections of this process; OptionError if a file cannot be used."""
        name = "kafka.ssl.truststore.location" if self.truststore_location else "kafka.ssl.truststore.certificates"
        try:
            context = ssl.create_default_context(
                cafile=self.truststore_location, cadata=self.truststore_certificates or None
            )
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.check_hostname = self.check_host
            name = "kafka.ssl.keystore.location" if self.keystore_location else "kafka.ssl.keystore.key"
            if self.keystore_location:
                context.load_cert_chain(self.keystore_location, password=self._password)
            elif self.key:
                self._load_texts(context)
        except (OSError, ValueError) as error:
            raise OptionError(
                f"option '{name}' cannot be used on this machine: {error}; give PEM that is readable"
            ) from None
        return context

    def _password(self) -> str:
        # Asked for only if the key is encrypted; without this OpenSSL would ask the terminal.
        if self.key_password is None:
            raise ValueError("the key is encrypted, and 'kafka.ssl.key.password' is not given")
        return self.key_password

    def _load_texts(self, context: ssl.SSLContext) -> None:
        # OpenSSL takes a key from files only; this one is readable by us alone, and gone again at once.
        assert self.key
        handle, path = tempfile.mkstemp(suffix=".pem")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(f"{self.key}\n{self.certificate_chain}\n")
            context.load_cert_chain(path, password=self._password)
        finally:
            os.unlink(path)
