"""Bundle adjustment: the errors of points seen by cameras, and their sparse Jacobian.

A camera has a rotation vector, a centre, a focal length, a principal point and two coefficients of
radial distortion: 11 numbers. As in ADBench, each observation has a weight that is estimated too,
with the residual 1 - w^2. An observation depends on 11 + 3 + 1 numbers, however many there are.
"""

import numpy as np

import retrograd as rg
from examples.problems.problem import Problem


def make(size, rng):
    cameras, points, seen = size
    rotations = rng.normal(0, 0.3, (cameras, 3))
    centres = rng.normal(0, 0.5, (cameras, 3)) - [0, 0, 8]
    rest = np.concatenate(
        [rng.uniform(1, 2, (cameras, 1)), rng.normal(0, 0.1, (cameras, 4))], axis=1
    )
    cams = np.concatenate([rotations, centres, rest], axis=1)
    pts = rng.normal(size=(points, 3))
    which = np.stack([np.arange(seen) % cameras, rng.integers(0, points, seen)], axis=1)
    return cams, pts, rng.uniform(0.5, 1.5, seen), which, rng.normal(size=(seen, 2))


def rotate(r, x):
    """x turned about the axis r by the angle |r| (Rodrigues)."""
    square = (r * r).sum(axis=-1, keepdims=True)
    angle = rg.sqrt(rg.maximum(square, 1e-20))
    axis = r / angle
    cosine = rg.cos(angle)
    dot = (axis * x).sum(axis=-1, keepdims=True)
    return x * cosine + rg.linalg.cross(axis, x) * rg.sin(angle) + axis * (dot * (1 - cosine))


def project(camera, x):
    """Where a camera sees a point."""
    seen = rotate(camera[..., 0:3], x - camera[..., 3:6])
    flat = seen[..., 0:2] / seen[..., 2:3]
    square = (flat * flat).sum(axis=-1, keepdims=True)
    bent = flat * (1 + camera[..., 9:10] * square + camera[..., 10:11] * square * square)
    return camera[..., 6:7] * bent + camera[..., 7:9]


def residuals(cameras, points, weights, which, features):
    """Errors of the projections, two for each observation, and of the weights."""
    found = project(cameras[which[:, 0]], points[which[:, 1]])
    return rg.concat([(weights[:, None] * (found - features)).reshape(-1), 1 - weights * weights])


def f(*args):
    r = residuals(*args)
    return 0.5 * (r * r).sum()


def reference(cameras, points, weights, which, features):
    """An observation at a time."""
    total = 0.0
    for (c, p), w, feature in zip(which, weights, features, strict=True):
        camera = cameras[c]
        angle = np.linalg.norm(camera[:3])
        k = camera[:3] / angle
        cross = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
        matrix = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
        x = matrix @ (points[p] - camera[3:6])
        flat = x[:2] / x[2]
        square = flat @ flat
        bent = flat * (1 + camera[9] * square + camera[10] * square**2)
        total += np.sum((w * (camera[6] * bent + camera[7:9] - feature)) ** 2) + (1 - w * w) ** 2
    return 0.5 * total


PROBLEM = Problem(
    "bundle adjustment",
    ((3, 10, 20), (49, 7776, 31_843), (257, 65_132, 225_911)),
    make,
    f,
    reference,
    wrt=(0, 1, 2),
)
