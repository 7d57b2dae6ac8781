"""Puts certificates in the order in which TLS sends them: the key's own, then each issuer."""

from __future__ import annotations

from collections.abc import Iterable

from cryptography import x509


def in_order(own: x509.Certificate, others: Iterable[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Return ``own`` and those of ``others`` that issued it, up to one that issued itself or is missing."""
    by_subject = {each.subject: each for each in others}
    chain = [own]
    while chain[-1].issuer != chain[-1].subject:
        issuer = by_subject.pop(chain[-1].issuer, None)
        if issuer is None:
            break
        chain.append(issuer)
    return tuple(chain)
