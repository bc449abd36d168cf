"""Fixtures of the command line's tests: those of the client and of the server."""

from support.client_fixtures import clean as clean
from support.client_fixtures import client as client
from support.client_fixtures import pass_time as pass_time
from support.client_fixtures import quiet as quiet
from support.client_fixtures import server as server
from support.client_fixtures import training as training
from support.server_fixtures import batch as batch
from support.server_fixtures import call as call
from support.server_fixtures import clock as clock
from support.server_fixtures import gate as gate
from support.server_fixtures import sampler_id as sampler_id
from support.server_fixtures import serve as serve
from support.server_fixtures import timers as timers
