"""MCP at /mcp: a third face over the same services, for models. It can do nothing that REST cannot."""
