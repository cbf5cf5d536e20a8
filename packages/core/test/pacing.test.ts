import { describe, expect, it } from 'vitest';
import { joinFlight, within } from '../src/pacing.ts';

describe('joinFlight', () => {
  it('shares equal work while it runs, and starts again when it has ended', async () => {
    const underWay = new Map<string, Promise<number>>();
    let begun = 0;
    const ask = (name: string) =>
      joinFlight(underWay, name, async () => {
        await null;
        return ++begun;
      });
    expect(await Promise.all([ask('a'), ask('a'), ask('b')])).toEqual([1, 1, 2]);
    expect(await ask('a')).toBe(3);
    expect(underWay.size).toBe(0);
  });

  it('reports a failure to all who joined, and forgets it', async () => {
    const underWay = new Map<string, Promise<string>>();
    const fail = () => Promise.reject(new Error('no'));
    const ask = () => joinFlight(underWay, 'a', fail);
    const ends = await Promise.allSettled([ask(), ask()]);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await joinFlight(underWay, 'a', async () => 'yes')).toBe('yes');
  });
});

describe('within', () => {
  const never = new Promise<string>(() => undefined);

  it('gives what the work gives, and its failure', async () => {
    expect(await within(Promise.resolve('done'), 60_000, () => 'late')).toBe('done');
    await expect(within(Promise.reject(new Error('no')), 60_000, () => 'late')).rejects.toThrow('no');
  });

  it('gives the default for late work, or throws it', async () => {
    expect(await within(never, 1, () => 'late')).toBe('late');
    const refuse = () => {
      throw new Error('too late');
    };
    await expect(within(never, 1, refuse)).rejects.toThrow('too late');
  });

  it('ignores the late end of work', async () => {
    let fail = (_: Error): void => undefined;
    const work = new Promise<string>((_, reject) => {
      fail = reject;
    });
    expect(await within(work, 1, () => 'late')).toBe('late');
    fail(new Error('unheard'));
  });
});
