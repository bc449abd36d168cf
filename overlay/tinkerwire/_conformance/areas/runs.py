"""Requirements on the lists and descriptions of training runs, sessions and samplers."""

from __future__ import annotations

import attrs

from tinkerwire_generated import models
from tinkerwire_generated.api.runs import get_training_run, list_training_runs
from tinkerwire_generated.api.sampling import get_sampler
from tinkerwire_generated.api.session import get_session, list_sessions, search_sessions
from tinkerwire_generated.api.training import create_model

from ..checks.breakages import cannot_manage
from ..checks.checkpoint_lists import expect_adapter, find_in_pages, has_zone, new_path, sampler_path
from ..checks.rejection import require_rejected_call
from ..requirement import Area, Breakage, Feature
from ..subject.server import Server
from ..violation import NotApplicable, expect

AREA = Area("RUN", "runs", "Training runs, sessions and samplers in lists")


@AREA.should(
    1,
    operations=("get_training_run",),
    contract=("get_training_run 200", "TrainingRun.base_model", "TrainingRun.lora_rank"),
    remedy="Describe the run of each model under the id of the model, with its base model and rank.",
    needs=("MOD-001",),
    breaks=[
        Breakage("0.3.0", "0.5.1", Feature.SAVE, "cannot create a training client from saved weights"),
        cannot_manage("cannot describe a run"),
    ],
)
async def run_describes_model(server: Server) -> None:
    """get_training_run with the id of a model gives its base model and rank."""
    model = await server.model()
    run, exchange = await server.client.call(get_training_run(model.id))
    expect(run.training_run_id == model.id, f"the run {model.id}", run.training_run_id, exchange)
    await expect_adapter(server, run, exchange)


@AREA.should(
    2,
    operations=("get_training_run",),
    contract=("TrainingRun.last_checkpoint", "TrainingRun.last_sampler_checkpoint"),
    remedy="Set last_checkpoint and last_sampler_checkpoint to the newest checkpoint of each kind.",
    needs=("RUN-001", "WGT-005", "WGT-006"),
    breaks=[cannot_manage("finds no checkpoint to resume from")],
)
async def run_has_newest_checkpoints(server: Server) -> None:
    """get_training_run gives the newest checkpoint for training, and the newest for sampling."""
    model = await server.new_model()
    run, exchange = await server.client.call(get_training_run(model.id))
    none = (run.last_checkpoint, run.last_sampler_checkpoint)
    expect(none == (None, None), "no checkpoint of a new model", str(none), exchange)
    saved = [
        (await model.save_weights(server.new_name()), await model.save_for_sampler(server.new_name())) for _ in range(2)
    ]
    run, exchange = await server.client.call(get_training_run(model.id))
    for found, expected in zip((run.last_checkpoint, run.last_sampler_checkpoint), saved[-1], strict=True):
        expect(found is not None and found.tinker_path == expected, expected, found and found.tinker_path, exchange)


@AREA.should(
    3,
    operations=("get_training_run",),
    contract="get_training_run 404",
    remedy="Answer get_training_run of a run that does not exist with 404.",
    needs=("RUN-001",),
)
async def unknown_run_is_an_error(server: Server) -> None:
    """get_training_run of a run that does not exist is answered with a 4xx."""
    await require_rejected_call(server, get_training_run("no-such-run"))


@AREA.should(
    4,
    operations=("list_training_runs",),
    contract=("list_training_runs 200", "TrainingRunsResponse.training_runs"),
    remedy="List the runs of all models of the caller.",
    needs=("MOD-001",),
    breaks=[cannot_manage("does not list runs that exist")],
)
async def run_list_has_model(server: Server) -> None:
    """The list of runs has the run of each model."""
    model = await server.model()
    await find_in_pages(
        server,
        lambda offset: list_training_runs(limit=100, offset=offset),
        lambda page: [run.training_run_id for run in page.training_runs],
        model.id,
    )


@AREA.should(
    5,
    operations=("list_training_runs",),
    contract=("list_training_runs 200", "Cursor.total_count", "Cursor.limit", "Cursor.offset"),
    remedy="Apply limit and offset, and give the cursor with them and the number of all runs.",
    needs=("RUN-004",),
    breaks=[cannot_manage("lists runs twice, or not all of them")],
)
async def run_list_has_pages(server: Server) -> None:
    """The list of runs has pages, which limit and offset select and the cursor describes."""
    await server.model()
    await server.new_model()
    seen = []
    for offset in (0, 1):
        page, exchange = await server.client.call(list_training_runs(limit=1, offset=offset))
        expect(len(page.training_runs) == 1, "one run on a page of one", len(page.training_runs), exchange)
        expect(page.cursor.total_count >= 2, "at least 2 runs in total", page.cursor.total_count, exchange)
        place = (page.cursor.limit, page.cursor.offset)
        expect(place == (1, offset), f"limit 1 and offset {offset} in the cursor", str(place), exchange)
        seen.append(page.training_runs[0].training_run_id)
    expect(seen[0] != seen[1], "another run on the second page", seen[1], exchange)


@AREA.should(
    6,
    operations=("get_training_run",),
    contract=("CreateModelRequest.user_metadata", "TrainingRun.user_metadata"),
    remedy="Keep user_metadata of create_model, and give it with the run.",
    needs=("RUN-001",),
    breaks=[cannot_manage("does not show the metadata of a run")],
)
async def run_has_metadata(server: Server) -> None:
    """get_training_run gives the user_metadata of create_model."""
    metadata = {"experiment": "seven"}
    body = attrs.evolve(await server.create_model_request(), user_metadata=metadata)
    model = server.adopt((await server.futures.run(create_model(body=body))).value.model_id)
    run, exchange = await server.client.call(get_training_run(model.id))
    expect(run.user_metadata == metadata, str(metadata), run.user_metadata, exchange)


@AREA.should(
    7,
    operations=("list_sessions",),
    contract=("list_sessions 200", "ListSessionsResponse.sessions"),
    remedy="List the sessions of the caller.",
    breaks=[cannot_manage("does not list sessions that exist", "0.5.1")],
)
async def session_list_has_session(server: Server) -> None:
    """The list of sessions has each session."""
    session_id = await server.session()
    await find_in_pages(
        server, lambda offset: list_sessions(limit=100, offset=offset), lambda page: page.sessions, session_id
    )


@AREA.should(
    8,
    operations=("list_sessions",),
    contract="list_sessions 200",
    remedy="Apply limit and offset.",
    needs=("RUN-007",),
    breaks=[cannot_manage("lists sessions twice, or not all of them", "0.5.1")],
)
async def session_list_has_pages(server: Server) -> None:
    """The list of sessions has pages, which limit and offset select."""
    await server.session()
    await server.sessions.create()
    seen = []
    for offset in (0, 1):
        page, exchange = await server.client.call(list_sessions(limit=1, offset=offset))
        expect(len(page.sessions) == 1, "one session on a page of one", len(page.sessions), exchange)
        seen += page.sessions
    expect(seen[0] != seen[1], "another session on the second page", seen[1], exchange)


@AREA.should(
    9,
    operations=("get_session",),
    contract=("get_session 200", "GetSessionResponse.training_run_ids", "GetSessionResponse.sampler_ids"),
    remedy="List the models and the sampling sessions that were created in the session.",
    needs=("MOD-001", "SMP-001"),
    breaks=[cannot_manage("does not find the runs of a session", "0.5.1")],
)
async def session_lists_models_and_samplers(server: Server) -> None:
    """get_session lists the models and the sampling sessions of the session, and of no other."""
    session_id = await server.sessions.create()
    model = await server.new_model(session_id=session_id)
    sampler = await server.new_sampler(session_id=session_id)
    session, exchange = await server.client.call(get_session(session_id))
    runs, samplers = list(map(str, session.training_run_ids)), list(session.sampler_ids)
    expect(runs == [model.id], f"the model {model.id} alone", str(runs), exchange)
    expect(samplers == [sampler.id], f"the sampling session {sampler.id} alone", str(samplers), exchange)


@AREA.should(
    10,
    operations=("get_session",),
    contract="get_session 404",
    remedy="Answer get_session of a session that does not exist with 404.",
    needs=("RUN-009",),
)
async def unknown_session_is_an_error(server: Server) -> None:
    """get_session of a session that does not exist is answered with a 4xx."""
    await require_rejected_call(server, get_session("no-such-session"))


@AREA.should(
    11,
    operations=("get_sampler",),
    contract=("get_sampler 200", "GetSamplerResponse.base_model", "GetSamplerResponse.model_path"),
    remedy="Describe each sampling session with its base model, and the path of its weights.",
    needs=("SMP-001", "WGT-002"),
    breaks=[Breakage("0.6.0", None, Feature.SAMPLE, "cannot find out the base model of a sampling client")],
)
async def sampler_is_described(server: Server) -> None:
    """get_sampler gives the base model of a sampling session, and the path of its weights or null."""
    path = await sampler_path(server)
    for sampler, expected in (
        (await server.base_sampler(), None),
        (await server.new_sampler(path), path),
    ):
        found, exchange = await server.client.call(get_sampler(sampler.id))
        base_model = await server.base_model()
        expect(found.sampler_id == sampler.id, f"the sampler {sampler.id}", found.sampler_id, exchange)
        expect(found.base_model == base_model, f"the base model {base_model}", found.base_model, exchange)
        expect(found.model_path == expected, f"the path {expected}", repr(found.model_path), exchange)


@AREA.should(
    12,
    operations=("get_sampler",),
    contract="get_sampler 404",
    remedy="Answer get_sampler of a sampling session that does not exist with 404.",
    needs=("RUN-011",),
)
async def unknown_sampler_is_an_error(server: Server) -> None:
    """get_sampler of a sampling session that does not exist is answered with a 4xx."""
    await require_rejected_call(server, get_sampler("no-such-sampler"))


@AREA.may(
    13,
    operations=("search_sessions",),
    contract=("search_sessions 200", "SessionSearchRequest.session_id", "SessionSearchResponse"),
    remedy="Find sessions by their id.",
    breaks=[cannot_manage("cannot search for sessions", "0.36.0")],
)
async def search_finds_session(server: Server) -> None:
    """search_sessions with the id of a session finds this session alone."""
    session_id = await server.session()
    call = search_sessions(body=models.SessionSearchRequest(session_id=session_id))
    exchange = await server.client.send_call(call)
    if exchange.status == 501:
        raise NotApplicable("the server does not implement search_sessions")
    found = [entry.session_id for entry in server.client.read(call, exchange).sessions]
    expect(found == [session_id], f"the session {session_id} alone", str(found), exchange)


@AREA.should(
    14,
    operations=("get_training_run",),
    contract="TrainingRun.last_request_time",
    remedy="Give times with their zone, as in 2026-01-31T12:00:00Z.",
    needs=("RUN-001",),
    breaks=[cannot_manage("gets a time without zone, which cannot be compared with others")],
)
async def run_time_has_zone(server: Server) -> None:
    """The last_request_time of a run has a time zone, and does not run backwards."""
    model = await server.model()
    before, _ = await server.client.call(get_training_run(model.id))
    await new_path(server)
    after, exchange = await server.client.call(get_training_run(model.id))
    text = str(exchange.json().get("last_request_time"))
    expect(has_zone(text), "a time with its zone", text, exchange)
    expected = f"a time from {before.last_request_time.isoformat()} on"
    expect(before.last_request_time <= after.last_request_time, expected, text, exchange)
