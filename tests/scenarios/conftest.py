"""Fixtures of tests that cross several packages."""

from support.client_fixtures import clean as clean
from support.client_fixtures import client as client
from support.client_fixtures import pass_time as pass_time
from support.client_fixtures import quiet as quiet
from support.client_fixtures import server as server
from support.client_fixtures import training as training
