"""Runs and traces

Revision: 0001, the first
"""

from alembic import op
import sqlalchemy as sa

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("visitor", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("model_name", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("result", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=True),
        sa.Column("block", sa.Integer(), nullable=True),
        sa.Column("schedule", sa.String(), nullable=True),
        sa.Column("confidence", sa.String(), nullable=True),
        sa.Column("threshold", sa.Double(), nullable=True),
        sa.Column("entropy_bound", sa.Double(), nullable=True),
        sa.Column("temperature", sa.Double(), nullable=True),
        sa.Column("top_p", sa.Double(), nullable=True),
        sa.Column("top_k", sa.Integer(), nullable=True),
        sa.Column("stop_rule", sa.String(), nullable=True),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("dtype", sa.String(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("forwards", sa.Integer(), nullable=False),
        sa.Column("queue_seconds", sa.Double(), nullable=False),
        sa.Column("prefill_seconds", sa.Double(), nullable=False),
        sa.Column("first_canvas_seconds", sa.Double(), nullable=True),
        sa.Column("model_seconds", sa.Double(), nullable=False),
        sa.Column("total_seconds", sa.Double(), nullable=False),
        sa.Column("parent_run_id", sa.String(), nullable=True),
        sa.Column("parent_step", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_runs_created"), ["created"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_model"), ["model"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_parent_run_id"), ["parent_run_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_visitor_created"), ["visitor", "created"], unique=False)

    op.create_table(
        "traces",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("lines", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_traces_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_traces")),
    )


def downgrade() -> None:
    op.drop_table("traces")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_runs_visitor_created"))
        batch_op.drop_index(batch_op.f("ix_runs_parent_run_id"))
        batch_op.drop_index(batch_op.f("ix_runs_model"))
        batch_op.drop_index(batch_op.f("ix_runs_created"))

    op.drop_table("runs")
