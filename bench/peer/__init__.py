"""The usual way to build such a service, to compare with: FastAPI on uvicorn and PostgreSQL, which does less."""
