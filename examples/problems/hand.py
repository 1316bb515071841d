"""Hand tracking: the distance of measured points to a skinned hand, in the parameters of its pose.

After ADBench: 26 numbers are the hand's rotation, its position, and four angles for each finger,
two at its root and one at each of the other joints. Bones carry on the transformations of their
parents; a vertex of the surface moves with a weighted mean of bones. The hand itself is made up
here: five fingers of four bones on a wrist.
"""

import numpy as np

import retrograd as rg
from examples.problems.problem import Problem

FINGERS, JOINTS = 5, 4
BONES = 1 + FINGERS * JOINTS
PARENTS = [-1] + [
    0 if j == 0 else 1 + i * JOINTS + j - 1 for i in range(FINGERS) for j in range(JOINTS)
]
ANGLES = 4  # of a finger: bending and spreading at the root, bending at two joints


def make(count, rng):
    offsets = np.zeros((BONES, 3))
    for i in range(FINGERS):
        offsets[1 + i * JOINTS] = [0.2 * (i - 2), 1.0, 0.0]
        offsets[2 + i * JOINTS : 1 + (i + 1) * JOINTS] = [0.0, 0.3, 0.0]
    at_rest = np.zeros((BONES, 3))
    for b, parent in enumerate(PARENTS):
        at_rest[b] = offsets[b] + (at_rest[parent] if parent >= 0 else 0)
    bone = rng.integers(0, BONES, count)
    surface = at_rest[bone] + rng.normal(0, 0.05, (count, 3))
    distance = ((surface[:, None] - at_rest[None]) ** 2).sum(axis=2)
    weights = np.exp(-distance / 0.02)
    weights /= weights.sum(axis=1, keepdims=True)
    theta = rng.normal(0, 0.2, 6 + FINGERS * ANGLES)
    measured = surface + rng.normal(0, 0.1, (count, 3))
    return theta, offsets, at_rest, surface, weights, measured


def axis_angle(r):
    """The matrix of a rotation about an axis (Rodrigues)."""
    angle = rg.sqrt(rg.maximum((r * r).sum(), 1e-20))
    k = r / angle
    zero = 0 * k[0]
    cross = rg.reshape(rg.stack([zero, -k[2], k[1], k[2], zero, -k[0], -k[1], k[0], zero]), (3, 3))
    eye = rg.eye(3, dtype=rg.float64)
    return eye + rg.sin(angle) * cross + (1 - rg.cos(angle)) * (cross @ cross)


def bend(x, z):
    """A rotation about the x axis, then about the z axis."""
    zero, one = 0 * x, 0 * x + 1
    sx, cx, sz, cz = rg.sin(x), rg.cos(x), rg.sin(z), rg.cos(z)
    about_x = rg.reshape(rg.stack([one, zero, zero, zero, cx, -sx, zero, sx, cx]), (3, 3))
    about_z = rg.reshape(rg.stack([cz, -sz, zero, sz, cz, zero, zero, zero, one]), (3, 3))
    return about_z @ about_x


def posed(theta, offsets, at_rest, surface, weights):
    """Where the vertices of the surface are."""
    turns, places = [rg.eye(3, dtype=rg.float64)], [rg.asarray(offsets[0])]
    for b in range(1, BONES):
        i, j = divmod(b - 1, JOINTS)
        a = theta[6 + i * ANGLES : 6 + (i + 1) * ANGLES]
        bent = bend(a[0], a[1]) if j == 0 else bend(a[1 + j], 0 * a[0]) if j < 3 else None
        parent = PARENTS[b]
        places.append(places[parent] + turns[parent] @ offsets[b])
        turns.append(turns[parent] if bent is None else turns[parent] @ bent)
    turn, place = rg.stack(turns), rg.stack(places)
    moved = rg.einsum("bij,vbj->vbi", turn, surface[:, None, :] - at_rest[None, :, :]) + place
    mixed = (weights[:, :, None] * moved).sum(axis=1)
    return mixed @ axis_angle(theta[:3]).T + theta[3:6]


def f(theta, offsets, at_rest, surface, weights, measured):
    r = posed(theta, offsets, at_rest, surface, weights) - measured
    return 0.5 * (r * r).sum()


def reference(theta, offsets, at_rest, surface, weights, measured):
    """With homogeneous matrices, a bone and a vertex at a time."""

    def homogeneous(rotation, shift):
        m = np.eye(4)
        m[:3, :3], m[:3, 3] = rotation, shift
        return m

    def about(axis, angle):
        s, c = np.sin(angle), np.cos(angle)
        if axis == "x":
            return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    absolute = [homogeneous(np.eye(3), offsets[0])]
    for b in range(1, BONES):
        i, j = divmod(b - 1, JOINTS)
        a = theta[6 + i * ANGLES : 6 + (i + 1) * ANGLES]
        own = np.eye(3)
        if j == 0:
            own = about("z", a[1]) @ about("x", a[0])
        elif j < 3:
            own = about("x", a[1 + j])
        absolute.append(absolute[PARENTS[b]] @ homogeneous(own, offsets[b]))
    angle = np.linalg.norm(theta[:3])
    k = theta[:3] / angle
    cross = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    whole = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    total = 0.0
    for vertex, w, target in zip(surface, weights, measured, strict=True):
        point = np.zeros(3)
        for b in range(BONES):
            local = np.append(vertex - at_rest[b], 1)
            point += w[b] * (absolute[b] @ local)[:3]
        total += np.sum((whole @ point + theta[3:6] - target) ** 2)
    return 0.5 * total


PROBLEM = Problem("hand tracking", (10, 544, 10_000, 100_000), make, f, reference)
