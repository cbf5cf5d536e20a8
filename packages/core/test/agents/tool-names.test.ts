import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  readDigestedName,
  readToolName,
  type ToolKind,
  toolKindOf,
  toToolName,
} from '../../src/agents/tool-names.ts';

const digest = (text: string): string => hash('sha256', text);
const nameOf = (kind: ToolKind, name: string): string => toToolName(kind, name, digest);

const anyName = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/);
/** Names that only differ where dots and underscores meet. */
const similarName = fc.stringMatching(/^[a_][a_.]{0,8}$/);

describe('the name of a tool', () => {
  test.each([
    ['run', 'trailer', 'run_trailer'],
    ['call', 'model.fast', 'call_model__fast'],
    ['call', 'audio-mix', 'call_audio-mix'],
  ] as const)('is readable: %s %s', (kind, name, tool) => {
    expect([nameOf(kind, name), toolKindOf(tool), readToolName(kind, tool)]).toEqual([tool, kind, name]);
  });

  test('ends with a digest where dots and underscores could be mistaken', () => {
    const tools = ['a.b', 'a__b', 'a_.b', 'a._b', '_a'].map((name) => nameOf('call', name));
    expect(new Set(tools).size).toBe(tools.length);
    expect(tools[0]).toBe('call_a__b');
    expect(tools.slice(1).every((tool) => /___[0-9a-f]{16}$/.test(tool))).toBe(true);
  });

  test('suits every client', () => {
    fc.assert(
      fc.property(anyName, (name) => {
        expect(nameOf('call', name)).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      }),
    );
  });

  test('belongs to one subject', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.oneof(anyName, similarName), { minLength: 2, maxLength: 50 }),
        (names) => {
          expect(new Set(names.map((name) => nameOf('call', name))).size).toBe(names.length);
        },
      ),
    );
  });

  test('is read back as its subject, or not at all', () => {
    fc.assert(
      fc.property(fc.oneof(anyName, similarName), (name) => {
        const tool = nameOf('run', name);
        const read = readToolName('run', tool);
        if (tool.includes('___')) expect(read).toBeNull();
        else expect(read).toBe(name);
      }),
    );
  });

  test('with a digest begins with its subject, and ends with the digest', () => {
    fc.assert(
      fc.property(fc.oneof(anyName, similarName), (name) => {
        const tool = nameOf('run', name);
        const read = readDigestedName('run', tool);
        const isOfName = name.startsWith(read?.begin ?? '?') && digest(name).startsWith(read?.digest ?? '?');
        expect([read !== null, isOfName]).toEqual([tool.includes('___'), tool.includes('___')]);
      }),
    );
  });
});
