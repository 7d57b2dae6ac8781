"""The process around the core: sockets, the event loop, start and stop. The only folder that knows asyncio."""
