"""`/healthz`: is the app up, and is its model ready? Answers without touching the model."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import playground
from playground.engine.engine import Engine
from playground.engine.state import ModelState


def health_route(engine: Engine, model: str = "pocket") -> Route:
    """A route that says 200 while the app can serve, 503 once its model has failed to load."""

    async def healthz(request: Request) -> JSONResponse:
        del request
        status = engine.status(model)
        failed = status.state is ModelState.FAILED
        about = {
            "id": model,
            "state": status.state.value,
            "seconds": round(status.seconds, 1),
            "message": status.message,
        }
        body = {"status": "failed" if failed else "ok", "version": playground.__version__, "model": about}
        return JSONResponse(body, status_code=503 if failed else 200)

    return Route("/healthz", healthz)
