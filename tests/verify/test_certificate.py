"""Certificates of proofs: their document, files, and what the checker says of them."""

import json

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify import checker

verify = rg.verify


@pytest.fixture(scope="module")
def verdict():
    box = verify.Box(np.full(2, -1, np.float32), np.full(2, 1, np.float32))

    def f(x):
        return rg.relu(x[0] + x[1]) - rg.relu(x[0]) - rg.relu(x[1])

    with rg.backend("reference"):
        return verify.prove(f, verify.Property(box, lambda y: (y < 0.1) & (y > -1.2)))


@pytest.mark.slow
def test_a_document_and_its_file(tmp_path, verdict):
    certificate = verdict.certificate
    found = certificate.check()
    assert found.cases == 2
    assert found.leaves == verdict.leaves
    path = tmp_path / "proof.json"
    certificate.save(path)
    assert json.loads(path.read_text()) == certificate.json
    assert checker.check(checker.load(str(path))) == found
    assert found.network == checker.digest(certificate.json["network"])
    assert "2 cases" in repr(certificate)


def test_another_claim_is_not_proved_by_it(verdict):
    """The proof of y < 0.1 is none of y < -0.1, whatever hash is written."""
    document = json.loads(json.dumps(verdict.certificate.json))
    for constraint in document["cases"][0]["unsafe"]:
        constraint["constant"] = (float.fromhex(constraint["constant"]) - 0.2).hex()
    document["claim"] = checker.digest([document[k] for k in ("network", "regions", "cases")])
    with pytest.raises(checker.Rejected):
        checker.check(document)
