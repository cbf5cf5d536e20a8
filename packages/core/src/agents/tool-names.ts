/**
 * Names of tools for agents. Clients accept `[A-Za-z0-9_-]{1,64}`; names of capabilities and pipelines are longer and
 * hold dots.
 *
 * 1. The name of a tool depends on nothing but its own subject, so it stays while others come and go.
 * 2. Two subjects never share a tool. A dot becomes `__`, where that can be read back. Any other name ends with `___`
 *    and 64 bits of its digest; three underscores in a row appear in no name that can be read back.
 */
export type ToolKind = 'call' | 'run';

const mostCharacters = 64;
const digestDigits = 16;

/** Whether the dots can be distinguished from underscores afterwards. */
function isReadable(name: string): boolean {
  return !/__|_\.|\._|\.\./.test(name);
}

/** The digest of a text in hexadecimal digits. */
export type DigestText = (text: string) => string;

/** @param name of a capability (`call`) or a pipeline (`run`) */
export function toToolName(kind: ToolKind, name: string, digest: DigestText): string {
  const plain = `${kind}_${name.replaceAll('.', '__').replaceAll(/[^A-Za-z0-9_-]/g, '-')}`;
  if (isReadable(`_${name}`) && plain.length <= mostCharacters) return plain;
  const end = `___${digest(name).slice(0, digestDigits)}`;
  return `${plain.slice(0, mostCharacters - end.length)}${end}`;
}

export interface DigestedName {
  /** The name of the subject begins with it. */
  readonly begin: string;
  /** The first hexadecimal digits of its digest. */
  readonly digest: string;
}

/** The beginning of the subject in a name with a digest. @returns null for a name that has none */
export function readDigestedName(kind: ToolKind, tool: string): DigestedName | null {
  const [, plain = '', digest = ''] = /^(.*)___([0-9a-f]{16})$/.exec(tool.slice(kind.length + 1)) ?? [];
  if (digest === '') return null;
  const [begin = ''] = /^[A-Za-z0-9]*/.exec(plain) ?? []; // other signs stand for dots, or for what no tool's name holds
  return { begin, digest };
}

/** @returns null for the name of another kind of tool */
export function toolKindOf(tool: string): ToolKind | null {
  return tool.startsWith('call_') ? 'call' : tool.startsWith('run_') ? 'run' : null;
}

/** The subject of a tool whose name can be read back; a name with a digest has to be searched. */
export function readToolName(kind: ToolKind, tool: string): string | null {
  const rest = tool.slice(kind.length + 1);
  return rest === '' || rest.includes('___') ? null : rest.replaceAll('__', '.');
}
