/** Readers of option values for commander; each refusal says what was allowed. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../render/amounts.ts';

export function collectPair(text: string, previous: Readonly<Record<string, string>> = {}) {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Write it as name=value.');
  return { ...previous, [text.slice(0, at)]: text.slice(at + 1) };
}

export function collectText(text: string, previous: readonly string[] = []): string[] {
  return [...previous, text];
}

export function readDurationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError('Write it as 500ms, 30s, 5m, 2h or 1d.');
  return ms;
}

export function readUsd(text: string): number {
  const usd = Number(text);
  if (text.trim() === '' || !Number.isFinite(usd) || usd < 0) {
    throw new InvalidArgumentError('Write an amount of US dollars, such as 0.05.');
  }
  return usd;
}

/** `--budget`, and `--ceiling` as another name of it: the command sees `budget`. */
export function addBudgetOption(command: Command, description: string): void {
  command
    .option('--budget <usd>', `${description} (also: --ceiling)`, readUsd)
    .addOption(new Option('--ceiling <usd>').argParser(readUsd).hideHelp())
    .on('option:ceiling', () => {
      command.setOptionValueWithSource('budget', command.getOptionValue('ceiling'), 'cli');
    });
}

export function readItem(text: string): number {
  const item = Number(text);
  if (!Number.isInteger(item) || item < 1) throw new InvalidArgumentError('Write a whole number from 1 on.');
  return item;
}

export function readLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > 200) {
    throw new InvalidArgumentError('Write a whole number from 1 to 200.');
  }
  return limit;
}

/** At most what the API allows one attempt. */
export function readTimeoutMs(text: string): number {
  const ms = readDurationMs(text);
  if (ms < 1 || ms > 86_400_000) throw new InvalidArgumentError('Write a duration from 1ms to 24h.');
  return Math.round(ms);
}
