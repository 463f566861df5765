# Unmask for self-hosting: docker build -t unmask . && docker run -p 7860:7860 -v unmask-data:/home/user/data unmask
FROM python:3.11-slim

# PyTorch's CPU builds are far smaller; for a GPU, build with --build-arg TORCH_INDEX=https://pypi.org/simple.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

RUN useradd --create-home --uid 1000 user \
    && mkdir -p /home/user/app /home/user/data /home/user/.cache/huggingface /home/user/.cache/gradio \
    && chown user:user /home/user/app /home/user/data /home/user/.cache /home/user/.cache/huggingface /home/user/.cache/gradio
USER user
ENV HOME=/home/user \
    PATH=/home/user/.local/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    UNMASK_DATA=/home/user/data \
    HF_HOME=/home/user/.cache/huggingface \
    GRADIO_TEMP_DIR=/home/user/.cache/gradio \
    GRADIO_ANALYTICS_ENABLED=False \
    GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860
WORKDIR /home/user/app

# Before the code, so that an edit of the code does not install everything again.
COPY --chown=user:user requirements.txt ./
RUN pip install --user --no-cache-dir --extra-index-url ${TORCH_INDEX} -r requirements.txt

COPY --chown=user:user app.py LICENSE NOTICE README.md ./
COPY --chown=user:user assets/ assets/
COPY --chown=user:user static/ static/
COPY --chown=user:user playground/ playground/

EXPOSE 7860
VOLUME ["/home/user/data"]
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ['GRADIO_SERVER_PORT'] + '/healthz', timeout=4)"]
CMD ["python", "app.py"]
