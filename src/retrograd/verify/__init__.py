"""Checks that do not trust the code they check: certificates of rules, errors by rounding, bounds
and proofs of programs."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach

if TYPE_CHECKING:
    from retrograd.verify.bound_propagation.bounds import Bounds, bounds
    from retrograd.verify.bound_propagation.box import Box, ball
    from retrograd.verify.bound_propagation.slopes import (
        Direction,
        lipschitz,
        monotone,
        sensitivity,
    )
    from retrograd.verify.certification.certificate import (
        Certificate,
        CertificateError,
        Certificates,
        Evidence,
    )
    from retrograd.verify.certification.functions import certify
    from retrograd.verify.certification.ops import rules
    from retrograd.verify.projected_gradient import Attack, attack
    from retrograd.verify.property import Property, robust
    from retrograd.verify.prover import Verdict, prove
    from retrograd.verify.rounding_error.analysis import rounding
    from retrograd.verify.rounding_error.nodes import NodeError
    from retrograd.verify.rounding_error.report import OutputError, Rounding
    from retrograd.verify.rounding_error.suggestions import Suggestion
    from retrograd.verify.vnnlib import load_vnnlib

# By name, the module that has it; each is imported when it is first asked for.
NAMES = {
    "Attack": "retrograd.verify.projected_gradient",
    "Bounds": "retrograd.verify.bound_propagation.bounds",
    "Box": "retrograd.verify.bound_propagation.box",
    "Certificate": "retrograd.verify.certification.certificate",
    "CertificateError": "retrograd.verify.certification.certificate",
    "Certificates": "retrograd.verify.certification.certificate",
    "Direction": "retrograd.verify.bound_propagation.slopes",
    "Evidence": "retrograd.verify.certification.certificate",
    "NodeError": "retrograd.verify.rounding_error.nodes",
    "OutputError": "retrograd.verify.rounding_error.report",
    "Property": "retrograd.verify.property",
    "Rounding": "retrograd.verify.rounding_error.report",
    "Suggestion": "retrograd.verify.rounding_error.suggestions",
    "Verdict": "retrograd.verify.prover",
    "attack": "retrograd.verify.projected_gradient",
    "ball": "retrograd.verify.bound_propagation.box",
    "bounds": "retrograd.verify.bound_propagation.bounds",
    "certify": "retrograd.verify.certification.functions",
    "lipschitz": "retrograd.verify.bound_propagation.slopes",
    "load_vnnlib": "retrograd.verify.vnnlib",
    "monotone": "retrograd.verify.bound_propagation.slopes",
    "prove": "retrograd.verify.prover",
    "robust": "retrograd.verify.property",
    "rounding": "retrograd.verify.rounding_error.analysis",
    "rules": "retrograd.verify.certification.ops",
    "sensitivity": "retrograd.verify.bound_propagation.slopes",
}

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__, {}, NAMES)

__all__ = [
    "Attack",
    "Bounds",
    "Box",
    "Certificate",
    "CertificateError",
    "Certificates",
    "Direction",
    "Evidence",
    "NodeError",
    "OutputError",
    "Property",
    "Rounding",
    "Suggestion",
    "Verdict",
    "attack",
    "ball",
    "bounds",
    "certify",
    "lipschitz",
    "load_vnnlib",
    "monotone",
    "prove",
    "robust",
    "rounding",
    "rules",
    "sensitivity",
]
