import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { listCodeBlocks } from '../docs/documents.ts';
import { runDemo } from '../support/demo.ts';

/** Without what differs from run to run. */
function mask(text: string): string {
  return text.replace(/\b(run|rev|skl|prj)_[0-9a-f]+-[^\s,]*/g, '$1').replace(/\b(\d+m)?[\d.]+s\b/g, 'time');
}

/** The lines that the guide shows. */
function shownLines(): string[] {
  return listCodeBlocks('docs/escalation-and-skills.md')
    .filter(({ mark }) => mark === 'demo-learning')
    .flatMap(({ text }) => mask(text).split('\n'))
    .filter((line) => line !== '');
}

test('a mistake is corrected by a person once; the next run with it corrects itself at level 0, at no cost', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'capstan demo-'));
  try {
    const dataDir = join(folder, 'data');
    const printed = await runDemo({ folder: inject('packageFolder'), dataDir, scenario: 'learning' });
    const [first = '', second = ''] = printed.split('Another job with the same mistake.');
    const failed = /^ {2}mix +failed: .*\/music_gain_db must be number, got "-12 dB"$/m;
    const [, review] = /^ {2}mix +waits for a review: (rev_\S+)$/m.exec(first) ?? [];
    const [, learnt] = /^ {2}mix +corrected by a person, learnt as (skl_\S+)$/m.exec(first) ?? [];
    expect(first).toMatch(failed);
    expect(first).toContain(`$ capstan review edit ${review} --set /music_gain_db=-12 `);
    expect(first).toMatch(/^✓ Succeeded {2}learning@1.0 .* \$0$/m);

    expect(second).toMatch(failed);
    expect(second).not.toMatch(/waits for a review|capstan review/);
    expect(second).toContain(`corrected at level 0 by ${learnt}\n`);
    expect(second).toMatch(/^✓ Succeeded {2}learning@1.0 .* \$0$/m);
    expect(second).toMatch(new RegExp(`^Skill +${learnt}, confidence 100%$`, 'm'));
    for (const run of ['First', 'Second']) {
      expect(second).toMatch(new RegExp(`^${run} run +succeeded, \\$0, its correction \\$0 +run_`, 'm'));
    }
    expect(second).not.toContain('✗');

    const lines = new Set(mask(printed).split('\n'));
    const shown = shownLines();
    expect(shown.length).toBeGreaterThan(20);
    expect(shown.filter((line) => !lines.has(line))).toEqual([]);

    // No bundle is named, so its worker ran the one of its build.
    const log = await readFile(join(dataDir, 'logs', 'worker.log'), 'utf8');
    expect(log).toContain(`"workflow_bundle":"${inject('workflowBundle')}"`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 240_000);
