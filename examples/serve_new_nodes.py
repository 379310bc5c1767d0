"""Serve predictions for nodes that your graph does not have yet.

    python examples/serve_new_nodes.py          # asks once, without a server
    cd examples && uvicorn serve_new_nodes:app

Needs `pip install fastapi uvicorn pandas`. The graph is prepared once; a request costs only the
part of it around the new nodes. For a model of your own, `argnn.load("run")` takes the place of the
training, and the folder of its graph that of the shop, which is made up here.
"""

import asyncio
import random
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import argnn
from argnn.errors import ArgnnError

rng = random.Random(0)
nodes = pd.DataFrame(
    {"id": f"c-{n:03d}", "age": rng.gauss(25 + 20 * (n % 2), 8), "label": "gb"[n % 2]}
    for n in range(120)
)
# Games or books; most friends like the same.
friends = [(n, (n + 2 * rng.randrange(9) + (rng.random() < 0.2)) % 120) for n in range(120)]
edges = pd.DataFrame([(nodes.id[a], nodes.id[b]) for a, b in friends], columns=["source", "target"])

clf = argnn.ARGNNClassifier().fit((edges, nodes))
context = clf.context((edges, nodes))
app = FastAPI()


class NewCustomers(BaseModel):
    """Rows with an id and the columns of the training table, and pairs of ids."""

    nodes: list[dict[str, Any]]
    edges: list[tuple[str, str]] = []


@app.post("/predict")
async def predict(new: NewCustomers) -> list[dict[str, Any]]:
    """The probability of each class for each new customer; one request after the other."""
    try:
        chances = clf.predict_proba(new.nodes, new.edges, context=context).round(3)
    except ArgnnError as error:
        raise HTTPException(422, str(error)) from error
    classes = clf.classes_.tolist()
    return [
        {"id": node["id"], **dict(zip(classes, row, strict=True))}
        for node, row in zip(new.nodes, chances.tolist(), strict=True)
    ]


if __name__ == "__main__":
    known = [("new", "c-008"), ("c-010", "new")]
    print(asyncio.run(predict(NewCustomers(nodes=[{"id": "new", "age": 27}], edges=known))))
