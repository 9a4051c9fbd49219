"""The live page: a small server of its own files and of JSON, and of nothing else."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from petridish.errors import UserError
from petridish.explorer.answers import Explorer, as_json
from petridish.explorer.run_sets import RunSets
from petridish.pages import render
from petridish.store.followed import Moved

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "petridish-token"  # and the port: a browser keeps cookies by host alone
SCRIPTS = (
    "state.js", "answers.js", "elements.js", "layout.js", "classes.js", "legend.js", "keys.js",
    "map.js", "saving.js", "charts.js", "setting.js", "run.js", "calculator.js", "claims.js",
    "home.js", "commands.js", "main.js",
)  # fmt: skip
"""The page's own script, in the order in which its files are read."""
STYLE = "explorer.css"
PLOTLY = "plotly.min.js"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def own_file(name: str) -> str:
    """Return a file of the page."""
    return files("petridish.explorer").joinpath("page", name).read_text(encoding="utf-8")


def plotly_script() -> bytes:
    """Return plotly's script, from its Python package."""
    return files("plotly").joinpath("package_data", PLOTLY).read_bytes()


def shell(**values: Any) -> str:
    """Return the page, without any runs in it."""
    return render("explorer.html", own_style=own_file(STYLE), **values)


def make_app(explorer: Explorer, *, token: str = "", hosts: Sequence[str] = LOOPBACK) -> Starlette:
    """Return the server's application.

    Parameters
    ----------
    explorer : Explorer
        What answers.
    token : str
        Without it nothing is served; "" asks for none.
    hosts : sequence of str
        The names under which the page may be asked for: a page of another name that leads here
        (DNS rebinding) is refused. "*" allows all.
    """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
    from starlette.routing import Route

    page = shell(
        scripts=[f"page/{name}" for name in SCRIPTS], inline="", data="", plotly="", note=""
    )
    served = {name: own_file(name).encode() for name in SCRIPTS}

    def home(request: Request) -> Response:
        given = request.query_params.get("token", "")
        if not token or not given:
            return HTMLResponse(page)
        found = RedirectResponse("./", status_code=303)  # the token leaves the address
        found.set_cookie(_cookie(request), given, httponly=True, samesite="strict")
        return found

    def script(request: Request) -> Response:
        name = request.path_params["name"]
        if name == PLOTLY:
            return Response(
                plotly_script(),
                media_type="text/javascript",
                headers={"Cache-Control": "max-age=3600"},
            )
        if name not in served:
            return JSONResponse({"error": "There is no such file."}, 404)
        return Response(served[name], media_type="text/javascript")

    def answer(request: Request) -> Response:
        try:
            found = explorer.answer(request.path_params["what"], dict(request.query_params))
        except Moved as mistake:
            return JSONResponse({"error": str(mistake)}, 409)
        except UserError as mistake:
            return JSONResponse({"error": str(mistake)}, 400)
        except MemoryError:
            return JSONResponse({"error": "There is not enough memory for this."}, 500)
        except Exception as fault:  # one clear line on the page, whatever a user's class raises
            text = f"A fault: {type(fault).__name__}: {fault}"[:500]
            return Response(as_json({"error": text}), 500, media_type="application/json")
        return Response(found, media_type="application/json")

    app = Starlette(
        routes=[
            Route("/", home),
            Route("/page/{name}", script),
            Route("/api/{what}", answer),
        ],
        middleware=[
            Middleware(_Guard, token=token),
            Middleware(TrustedHostMiddleware, allowed_hosts=_hosts(hosts), www_redirect=False),
            Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=4),
        ],
    )
    return app


def _cookie(request: Request) -> str:
    """Return the name of the token's cookie, by the port that the browser sees."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}-{port if port.isdecimal() else 80}"


def _hosts(hosts: Sequence[str]) -> list[str]:
    """Return host names as Starlette compares them, without a port; one of IPv6 begins with [."""
    return [f"[{host}]" if ":" in host else host for host in hosts]


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Guard:
    """Puts headers on all that is served, and asks for the token."""

    def __init__(self, app: Callable[..., Awaitable[None]], token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        from starlette.datastructures import MutableHeaders
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        given = request.query_params.get("token") or request.cookies.get(_cookie(request), "")
        if self.token and not secrets.compare_digest(given.encode(), self.token.encode()):
            refused = PlainTextResponse(
                "This explorer asks for its token. Open the address that `petridish explore` "
                "printed, which ends in ?token=….\n",
                status_code=401,
            )
            await refused(scope, receive, with_headers)
            return
        await self.app(scope, receive, with_headers)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say that the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise UserError(
            f"The port {port} of {host} cannot be used: {error.strerror}. Give another by --port, "
            "or --port 0 for any that is free."
        ) from error
    found.listen(128)
    return found


def address(host: str, port: int, token: str) -> str:
    """Return the address of the page, with its token."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/{f'?token={quote(token)}' if token else ''}"


def serve(
    stores: Sequence[Path],
    records: Path | None,
    *,
    host: str,
    port: int,
    token: str,
    ready: Callable[[str], None],
) -> None:
    """Serve the page until it is interrupted; `ready` is told its address."""
    import uvicorn

    listening = bind(host, port)
    app = make_app(
        Explorer(RunSets(stores, records)),
        token=token,
        hosts=LOOPBACK if host in LOOPBACK else ("*",),
    )
    ready(address(host, listening.getsockname()[1], token))
    config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listening])
