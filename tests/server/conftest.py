"""Fixtures of the embedded server's tests."""

from support.server_fixtures import batch as batch
from support.server_fixtures import call as call
from support.server_fixtures import clock as clock
from support.server_fixtures import gate as gate
from support.server_fixtures import sampler_id as sampler_id
from support.server_fixtures import serve as serve
from support.server_fixtures import timers as timers
