/**
 * Kind `command`: a program for each call, never a shell. Its arguments are templates. Downloaded files are paths in the
 * temporary folder of the call, which is also the working directory; files of `files.upload` are paths that the
 * program has to write.
 *
 * The program sees PATH, HOME, LANG, LC_ALL, TMPDIR, TZ and the variables of `env`, which are templates too, and no secret
 * of the instance.
 */

import { dirname, resolve } from 'node:path';
import { CallFailure } from '@capstan/capability';
import { parseExactJson, writeExactJson } from '@capstan/core/contracts/exact-json';
import { durationWithin, Json } from '@capstan/core/contracts/primitives';
import { parseDuration } from '@capstan/core/duration';
import { z } from 'zod';
import { type CommandEnd, runCommand } from '../run-command.ts';
import type { Evaluate } from '../templates.ts';
import { defineKind, type WrapHost, type WrappedCall } from '../wrap-kind.ts';

const ExitOutcome = z.enum(['ok', 'refused', 'failed', 'busy']);
type ExitOutcome = z.infer<typeof ExitOutcome>;

const Pattern = z.string().refine(isPattern, { error: 'is no regular expression' });

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

const CommandPart = z.strictObject({
  argv: z.array(z.union([z.string(), z.number()])).min(1),
  stdin: Json.optional(),
  stdout: z.enum(['text', 'json', 'ignore']).default('text'),
  env: z.record(z.string(), z.string()).default({}),
  exit_codes: z
    .record(z.string().regex(/^(default|[0-9]{1,3})$/, { error: 'an exit code or default' }), ExitOutcome)
    .default({}),
  progress: z
    .strictObject({
      pattern: Pattern,
      total: z.union([z.number(), z.string()]).optional(),
      total_pattern: Pattern.optional(),
      stream: z.enum(['stderr', 'stdout']).default('stderr'),
    })
    .optional(),
  grace: durationWithin('0s', '24h').default('5s'),
});
type CommandPart = z.infer<typeof CommandPart>;

const inherited = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TMPDIR', 'TZ'];

/** A variable that is null is left out. */
function compileEnvironment(
  { env }: CommandPart,
  { compile, environment: given }: WrapHost,
): Evaluate<NodeJS.ProcessEnv> {
  const rows = Object.entries(env).map(
    ([name, written]) => [name, compile.value(written, `/command/env/${name}`)] as const,
  );
  return (scope) => {
    const environment = Object.fromEntries(inherited.map((name) => [name, given[name]]));
    for (const [name, evaluate] of rows) {
      const value = evaluate(scope);
      if (value !== null) environment[name] = toVariable(value, name);
    }
    return environment;
  };
}

/** @throws Error when the value of the input cannot be a variable */
function toVariable(value: Json, name: string): string {
  const text = typeof value === 'string' ? value : writeExactJson(value);
  if (text.includes('\0')) throw new Error(`/command/env/${name}: a variable has no NUL`);
  return text;
}

/** A finite decimal number: programs read infinity, and numbers of another base, as options. */
function isNegativeNumber(text: string): boolean {
  return /^-(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text));
}

/**
 * The texts of one argument: an expression may yield null for no argument, or a list for several.
 * @throws Error when a text of the input would be read as an option
 */
function toArguments(
  value: Json,
  { isTemplate, at }: { readonly isTemplate: boolean; readonly at: number },
): string[] {
  if (value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item: Json) => toArguments(item, { isTemplate, at }));
  if (typeof value === 'object')
    throw new Error(`/command/argv/${at}: an argument is a text or number; write | json`);
  const text = String(value);
  const isOption = isTemplate && text.startsWith('-') && !isNegativeNumber(text);
  if (isOption) throw new Error(`/command/argv/${at}: a value that begins with - would be read as an option`);
  return [text];
}

/** The arguments behind `--` are never options. */
function compileArguments({ argv }: CommandPart, { compile }: WrapHost): Evaluate<string[]> {
  const end = argv.indexOf('--');
  const items = argv.slice(1).map((written, index) => {
    const at = index + 1;
    const isTemplate =
      typeof written === 'string' && written.trimStart().startsWith('{{') && !(end >= 0 && at > end);
    return { at, isTemplate, evaluate: compile.value(written, `/command/argv/${at}`) };
  });
  return (scope) =>
    items.flatMap(({ at, isTemplate, evaluate }) => toArguments(evaluate(scope), { isTemplate, at }));
}

/** `12.5`, `45%` or `00:01:02.5`, which is 62.5. */
function readAmount(text: string | undefined): number {
  const parts = (text ?? '').replace('%', '').trim().split(':').map(Number);
  return parts.reduce((sum, part) => sum * 60 + part, 0);
}

/** Reports progress by the lines that the program prints. */
function createProgress(part: CommandPart, total: number | null, { progress }: WrappedCall['context']) {
  const rule = part.progress;
  if (rule === undefined) return () => undefined;
  const [pattern, totalPattern] = [new RegExp(rule.pattern), new RegExp(rule.total_pattern ?? '(?!)')];
  let whole = total ?? (rule.total_pattern === undefined ? 100 : Number.NaN);
  return (stream: 'stdout' | 'stderr', line: string): void => {
    if (stream !== rule.stream) return;
    const found = totalPattern.exec(line);
    if (found !== null) whole = readAmount(found[1]);
    const done = readAmount(pattern.exec(line)?.[1] ?? 'none') / whole;
    if (done >= 0 && Number.isFinite(done)) progress(Math.min(1, done));
  };
}

const failures = {
  refused: (message: string) => new Error(message),
  failed: (message: string) => new CallFailure(502, message, { code: 'command_failed' }),
  busy: (message: string) => new CallFailure(503, message, { code: 'command_busy' }),
} as const satisfies Record<Exclude<ExitOutcome, 'ok'>, (message: string) => Error>;

/** What shells exit with for a program that cannot run, is missing, or was ended by a signal: never by its input. */
function isFaultOfShell(code: number): boolean {
  return code === 126 || code === 127 || (code > 128 && code <= 128 + 64);
}

function outcomeOf({ code }: CommandEnd, codes: CommandPart['exit_codes']): ExitOutcome {
  if (code === null) return 'failed';
  const usual = isFaultOfShell(code) ? 'failed' : 'refused';
  return codes[String(code)] ?? (code === 0 ? 'ok' : (codes.default ?? usual));
}

function readStdout({ stdout, cut }: CommandEnd, form: CommandPart['stdout']): Json {
  if (form === 'ignore') return null;
  if (cut) throw failures.failed('the program printed more than 8 MiB');
  if (form === 'text') return stdout;
  try {
    return parseExactJson(stdout) as Json;
  } catch {
    throw failures.failed(`the program printed ${JSON.stringify(stdout.slice(0, 100))}, not JSON`);
  }
}

function describeEnd(program: string, { code, signal, lastLines }: CommandEnd): string {
  const end = code === null ? `was ended by ${signal}` : `ended with exit code ${code}`;
  return `${program} ${end}: ${lastLines}`.trimEnd();
}

export const command = defineKind({
  shape: CommandPart,
  prepare: (part, host) => {
    const [first = ''] = part.argv.map(String);
    if (first.includes('{{')) {
      const message = 'the program is written out; only its arguments are templates';
      host.compile.refuse({ code: 'value_invalid', pointer: '/command/argv/0', message });
    }
    const program = first.startsWith('.') ? resolve(host.folder, first) : first;
    const argumentsOf = compileArguments(part, host);
    const environmentOf = compileEnvironment(part, host);
    const stdin = part.stdin === undefined ? null : host.compile.value(part.stdin, '/command/stdin');
    const total =
      part.progress?.total === undefined
        ? null
        : host.compile.number(part.progress.total, '/command/progress/total');
    const output = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };
    return {
      defaults: part.stdout === 'text' ? { output, result: { text: '{{ answer }}' } } : {},
      fileForm: 'path',
      writesFiles: true,
      program,
      perform: async ({ scope, context }) => {
        const given = stdin?.(scope) ?? null;
        const end = await runCommand(
          {
            program,
            args: argumentsOf(scope),
            folder: dirname(await context.media.temporaryPath('folder')),
            environment: environmentOf(scope),
            stdin: given === null ? null : typeof given === 'string' ? given : writeExactJson(given),
            graceMs: parseDuration(part.grace),
            onLine: createProgress(part, total?.(scope) ?? null, context),
          },
          context.signal,
        );
        const outcome = outcomeOf(end, part.exit_codes);
        if (outcome !== 'ok') throw failures[outcome](host.hide(describeEnd(first, end)));
        return readStdout(end, part.stdout);
      },
    };
  },
});
