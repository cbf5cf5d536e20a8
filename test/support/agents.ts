/** Official clients of the Model Context Protocol, of both generations. */
import { type CallToolResult, Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export type Generation = 'legacy' | 'modern';

function aClient(generation: Generation): Client {
  const mode = generation === 'legacy' ? ('legacy' as const) : { pin: '2026-07-28' };
  return new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
}

/** @param headers besides the key */
export async function connectOverHttp(
  { url, key }: { readonly url: string; readonly key: string },
  generation: Generation = 'modern',
  headers: Readonly<Record<string, string>> = {},
): Promise<Client> {
  const client = aClient(generation);
  const requestInit = { headers: { authorization: `Bearer ${key}`, ...headers } };
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit }));
  return client;
}

export async function connectOverStdio(
  args: readonly string[],
  generation: Generation = 'modern',
): Promise<Client> {
  const client = aClient(generation);
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [...args] }));
  return client;
}

/** The structured content of a result, and whether it is an error. */
export async function useTool<Content>(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
): Promise<{ readonly content: Content; readonly isError: boolean }> {
  const result: CallToolResult = await client.callTool({ name, arguments: args });
  return { content: result.structuredContent as Content, isError: result.isError === true };
}
