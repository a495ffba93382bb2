"""A door into a network namespace: `doorway.py SOCKET HOST PORT` carries a Unix socket's bytes there."""

from __future__ import annotations

import asyncio
import contextlib
import sys


async def main(path: str, host: str, port: int) -> None:
    async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(host, port)
            await asyncio.gather(pour(reader, far_writer), pour(far_reader, writer))
        writer.close()

    async with await asyncio.start_unix_server(enter, path) as server:
        await server.serve_forever()


async def pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            into.write(data)
            await into.drain()
    into.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
