"""The run log: every run kept in SQLite or PostgreSQL, listed, reopened, exported and deleted.

`store.RunStore` is the door. SQLAlchemy and Alembic are known here only; `rows` holds the plain data that
other rooms receive. This package must not know models, samplers or pages.
"""
