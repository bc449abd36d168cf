"""Requirements on downloads and copies of weights."""

from __future__ import annotations

import io
import tarfile
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from tinkerwire_generated import models
from tinkerwire_generated.api.runs import get_checkpoint_archive_url, get_external_weights_urls
from tinkerwire_generated.api.weights import copy_weights, save_weights_external

from ..._checkpoints.paths import parse_checkpoint_address
from ..checks.breakages import cannot_manage
from ..checks.checkpoint_lists import absent_address, sampler_path, training_path, with_zone
from ..checks.rejection import require_rejected_call
from ..checks.saved_weights import ABSENT_NAME, expect_restored, trained_checkpoint
from ..exchange import Exchange
from ..requirement import Area
from ..subject.server import Server
from ..violation import NotApplicable, Violation, expect

AREA = Area("DLD", "downloads", "Downloads and copies of weights")


@AREA.should(
    1,
    until="0.36.0",
    operations=("get_checkpoint_archive_url",),
    contract="get_checkpoint_archive_url 302",
    remedy="Redirect to the URL of an archive, with its expiry in the header Expires.",
    needs=("WGT-006",),
    breaks=[cannot_manage("cannot download checkpoints", newest="0.35.0")],
)
async def archive_has_url(server: Server) -> None:
    """get_checkpoint_archive_url gives the URL of an archive, which has not expired."""
    url, expires, exchange = await _archive_url(server)
    expect("://" in url, "an absolute URL", url, exchange)
    if expires is not None:
        expect(expires > datetime.now(timezone.utc), "an expiry in the future", expires.isoformat(), exchange)


@AREA.should(
    2,
    until="0.36.0",
    operations=("get_checkpoint_archive_url",),
    contract="get_checkpoint_archive_url 302",
    remedy="Serve the archive, a tar that may be compressed, at its URL to clients without a key.",
    needs=("DLD-001",),
    breaks=[cannot_manage("cannot download checkpoints", newest="0.35.0")],
)
async def archive_is_whole(server: Server) -> None:
    """The URL of an archive serves a complete tar with at least one file, without a key."""
    url, _, _ = await _archive_url(server)
    exchange = await _download(server, url)
    try:
        with tarfile.open(fileobj=io.BytesIO(exchange.content)) as archive:
            sizes = [len(archive.extractfile(member).read()) for member in archive if member.isfile()]  # type: ignore[union-attr]
    except (tarfile.TarError, OSError, EOFError) as error:
        raise Violation("a complete tar", f"{len(exchange.content)} bytes: {error}", exchange) from None
    expect(sum(sizes) > 0, "a tar with a file that is not empty", f"the sizes {sizes}", exchange)


@AREA.should(
    3,
    until="0.36.0",
    operations=("get_checkpoint_archive_url",),
    contract="get_checkpoint_archive_url 404",
    remedy="Answer get_checkpoint_archive_url for a checkpoint that does not exist with 404.",
    needs=("DLD-001",),
)
async def archive_of_unknown_is_an_error(server: Server) -> None:
    """get_checkpoint_archive_url of a checkpoint that does not exist is answered with a 4xx."""
    await require_rejected_call(server, get_checkpoint_archive_url(*await absent_address(server, "sampler")))


@AREA.should(
    4,
    operations=("save_weights_external",),
    contract=("save_weights_external 200", "SaveWeightsExternalResponseInternal.path"),
    remedy="Save the weights as files, and return the path tinker://RUN/external_weights/NAME.",
    needs=("WGT-001",),
    breaks=[cannot_manage("cannot download checkpoints", "0.28.1")],
)
async def external_save_returns_path(server: Server) -> None:
    """save_weights_external ends with the path tinker://RUN/external_weights/NAME."""
    model = await server.model()
    name = server.new_name()
    path, _, exchange = await _save_external(server, name)
    expected = model.checkpoint_path("external", name)
    expect(path == expected, expected, path, exchange)


@AREA.should(
    5,
    operations=("save_weights_external", "get_external_weights_urls"),
    contract=(
        "get_external_weights_urls 200",
        "ExternalWeightsUrlsResponse.urls",
        "ExternalWeightsUrlsResponse.expires",
    ),
    remedy="Serve each file at its URL to clients without a key; size_bytes is the size of all files.",
    needs=("DLD-004",),
    breaks=[cannot_manage("cannot download checkpoints", "0.28.1")],
)
async def external_weights_can_be_downloaded(server: Server) -> None:
    """The URLs of external weights serve files of the stated size, without a key."""
    path, size, _ = await _save_external(server, server.new_name())
    answer, exchange = await server.client.call(get_external_weights_urls(*parse_checkpoint_address(path)))
    expect(bool(answer.urls), "at least one file", "none", exchange)
    expires = with_zone(answer.expires)
    expect(expires > datetime.now(timezone.utc), "an expiry in the future", expires.isoformat(), exchange)
    downloads = [await _download(server, url) for url in answer.urls.values()]
    total = sum(len(download.response.content) for download in downloads if download.response)
    expect(total > 0, "files that are not empty", "no bytes", downloads[0])
    if size is not None:
        expect(total == size, f"{size} bytes, as the save stated", f"{total} bytes", downloads[0])


@AREA.should(
    6,
    operations=("get_external_weights_urls",),
    contract="get_external_weights_urls 404",
    remedy="Answer get_external_weights_urls with 404 for weights that do not exist, or are of another kind.",
    needs=("WGT-005",),
)
async def urls_of_other_weights_are_an_error(server: Server) -> None:
    """get_external_weights_urls of unknown weights, or of weights for training, is answered with a 4xx."""
    other = parse_checkpoint_address(await training_path(server))
    for address in (await absent_address(server, "external"), other):
        await require_rejected_call(server, get_external_weights_urls(*address))


# --- copies -----------------------------------------------------------------------------------------------------------


@AREA.may(
    7,
    operations=("copy_weights",),
    contract=("copy_weights 200", "CopyWeightsResponse.tinker_path"),
    remedy="Copy the weights to a path of their own, and keep them when the source is deleted.",
    needs=("WGT-003",),
    breaks=[cannot_manage("cannot copy weights", "0.26.2")],
)
async def copy_has_own_weights(server: Server) -> None:
    """copy_weights returns another path, from which the same weights can be loaded."""
    source = await trained_checkpoint(server)
    copied, exchange = await server.client.call(copy_weights(body=await _copy_request(server, source.path)))
    server.saved_paths.append(copied.tinker_path)
    expect(copied.tinker_path != source.path, "another path", copied.tinker_path, exchange)
    await expect_restored(server, copied.tinker_path, "the log probabilities of the source", source.saved)


@AREA.may(
    8,
    operations=("copy_weights",),
    contract="copy_weights 404",
    remedy="Answer copy_weights of weights that do not exist with 404.",
    needs=("DLD-007",),
)
async def copy_of_unknown_is_an_error(server: Server) -> None:
    """copy_weights of weights that do not exist is answered with a 4xx."""
    model = await server.model()
    path = model.checkpoint_path("training", ABSENT_NAME)
    await require_rejected_call(server, copy_weights(body=await _copy_request(server, path)))


async def _archive_url(server: Server) -> tuple[str, datetime | None, Exchange]:
    """Return the URL of the archive of a checkpoint, and its expiry."""
    call = get_checkpoint_archive_url(*parse_checkpoint_address(await sampler_path(server)))
    exchange = await server.client.send_call(call)
    if exchange.status == 302 and exchange.response:
        url, expires = exchange.response.headers.get("location", ""), exchange.response.headers.get("expires")
        try:
            return url, with_zone(parsedate_to_datetime(expires)) if expires else None, exchange
        except ValueError:
            raise Violation("an HTTP date in the header Expires", expires or "", exchange) from None
    answer = server.client.read(call, exchange)
    if answer is None:
        raise Violation("the URL of an archive", exchange.describe(), exchange)
    return answer.url, with_zone(answer.expires), exchange


async def _download(server: Server, url: str) -> Exchange:
    """Download a file without the key."""
    if not url.startswith(("http://", "https://")):
        raise NotApplicable(f"the file is at {url}, which this program does not open")
    exchange = await server.client.download(url)
    expect(exchange.status == 200, "the file", exchange.describe(), exchange)
    return exchange


async def _save_external(server: Server, name: str) -> tuple[str, int | None, Exchange]:
    """Save weights to download, and return their path and size."""
    model = await server.model()
    body = models.SaveWeightsExternalRequest(model_id=model.id, path=name, seq_id=model.take_seq_id())
    result = await server.futures.run(save_weights_external(body=body))
    path = result.value.path or ""
    server.saved_paths.append(path)
    return path, result.value.size_bytes, result.exchange


async def _copy_request(server: Server, path: str) -> models.CopyWeightsRequest:
    plan = await server.create_model_request()
    return models.CopyWeightsRequest(session_id=plan.session_id, model_seq_id=plan.model_seq_id, source_path=path)
