"""Measurements of the house: its structure, the bits it computes, its speed.

Each script takes `--source`, the `src` folder of any checkout, so that an old and a new revision
are measured by the same script:

    python -m scripts.house.structure --source src
    python -m scripts.house.bits --source src --out new.json
    python -m scripts.house.speed --old ../old/src --new src
"""
