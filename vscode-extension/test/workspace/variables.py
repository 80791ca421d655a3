"""Writes down the environment that it was started with."""
import json
import os

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "variables.json.new"), "w") as file:
    json.dump(dict(os.environ), file)
os.rename(os.path.join(here, "variables.json.new"), os.path.join(here, "variables.json"))
