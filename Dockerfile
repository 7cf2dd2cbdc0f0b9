# The operator's image: Debian's Python, the pinned packages and the operator; no shell, no package
# manager, no tools. `make image` builds it with Docker or buildah, or from the same script without.
FROM debian:12.11-slim AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates mmdebstrap python3 python3-venv
WORKDIR /src
COPY requirements.txt ./
RUN python3 -m venv /venv \
 && /venv/bin/pip install --quiet "$(grep -oE '^uv==[0-9.]+' requirements.txt)" \
 && /venv/bin/uv pip sync --quiet --python /venv/bin/python --require-hashes requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY tests/cluster/harness/image_root.py tests/cluster/harness/
COPY operator operator
ARG COMMIT=
RUN COMMIT="$COMMIT" /venv/bin/python tests/cluster/harness/image_root.py /rootfs

FROM scratch
COPY --from=build /rootfs /
ARG COMMIT=
LABEL org.opencontainers.image.title="evenkeel" org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="$COMMIT"
ENV PATH="/usr/local/bin:/usr/bin" PYTHONDONTWRITEBYTECODE="1"
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/evenkeel"]
CMD ["run"]
