import { expect, test } from 'vitest';
import { haproxyConfiguration } from '../../scripts/cluster/haproxy-configuration.ts';
import { layOut } from '../../scripts/cluster/ports.ts';
import { listCodeBlocks } from './documents.ts';

/** Without addresses, and without what only TLS needs. */
function rulesOf(configuration: string): string[] {
  const lines = configuration.trim().split('\n');
  const rules = lines.filter((line) => !/^ {2}bind |X-Forwarded-Proto/.test(line));
  return rules.map((line) => line.replace(/^( {2}server \S+) \S+/, '$1'));
}

test('HAProxy is documented as the cluster runs it', () => {
  const shown = listCodeBlocks('docs/production.md').filter(({ text }) => text.startsWith('global\n'));
  const run = haproxyConfiguration({ ports: layOut(20_000), servers: 2 });
  expect(shown.map(({ text }) => rulesOf(text))).toEqual([rulesOf(run)]);
});
