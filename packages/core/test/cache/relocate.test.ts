import { expect, it } from 'vitest';
import { findMediaPlaces, listOutputFiles, type MediaPlaces, relocate } from '../../src/cache.ts';
import { parseExactJson, writeExactJson } from '../../src/contracts/exact-json.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';

function placesOf(input: JsonObject): MediaPlaces {
  const places = findMediaPlaces(input);
  if (places === null) throw new Error('not to be said');
  return places;
}

const made = {
  clips: [{ media_store_path: 'media://a/1' }, 'media://a/2'],
  output_path: 'media://a/out.mp4',
};
const asked = {
  clips: [{ media_store_path: 'media://b/x' }, 'media://b/y'],
  output_path: 'media://b/reel.mp4',
};

it('the written file goes to the requested path, and the output names the paths of the new request', () => {
  const output = { path: 'media://a/out.mp4', of: ['media://a/2', 'media://a/1'], n: 2, text: 'out.mp4' };
  const files = { 'media://a/out.mp4': 'sha' };
  expect(relocate({ output, places: placesOf(made), files }, placesOf(asked))).toEqual({
    output: { path: 'media://b/reel.mp4', of: ['media://b/y', 'media://b/x'], n: 2, text: 'out.mp4' },
    copies: [{ from: { reference: 'media://a/out.mp4', sha256: 'sha' }, to: 'media://b/reel.mp4' }],
    kept: [],
  });
});

it('files below a path move with it; files elsewhere stay', () => {
  const output = { parts: ['media://a/out/1', 'media://c/log'] };
  const files = { 'media://a/out/1': 'one', 'media://c/log': 'log' };
  const places = placesOf({ output_path: 'media://a/out' });
  expect(relocate({ output, places, files }, placesOf({ output_path: 'media://b/parts' }))).toEqual({
    output: { parts: ['media://b/parts/1', 'media://c/log'] },
    copies: [{ from: { reference: 'media://a/out/1', sha256: 'one' }, to: 'media://b/parts/1' }],
    kept: [{ reference: 'media://c/log', sha256: 'log' }],
  });
});

it('numbers that no double keeps stay as they are', () => {
  const output = parseExactJson('{"id":7615917337495251231,"path":"media://a/out.mp4"}') as JsonObject;
  const moved = relocate({ output, places: placesOf(made), files: {} }, placesOf(asked));
  expect(writeExactJson(moved.output)).toBe('{"id":7615917337495251231,"path":"media://b/reel.mp4"}');
});

it('a file that was written over is the one that was written', () => {
  const places = placesOf({ clip: 'media://a/f', output_path: 'media://a/f' });
  const files = { 'media://a/f': 'new' };
  const wanted = placesOf({ clip: 'media://b/g', output_path: 'media://b/g' });
  expect(relocate({ output: 'media://a/f', places, files }, wanted)).toMatchObject({
    output: 'media://b/g',
    copies: [{ to: 'media://b/g' }],
  });
});

it('a path that is the same needs no copy, but its file must be unchanged', () => {
  const places = placesOf({ output_path: 'media://a/f' });
  expect(relocate({ output: 'media://a/f', places, files: { 'media://a/f': 'x' } }, places)).toEqual({
    output: 'media://a/f',
    copies: [],
    kept: [{ reference: 'media://a/f', sha256: 'x' }],
  });
});

it('an output names its files, or they cannot be determined', () => {
  expect(listOutputFiles({ a: ['media://j/1', { b: 'media://j/2' }], c: 'media' })).toEqual(
    new Set(['media://j/1', 'media://j/2']),
  );
  expect(listOutputFiles({ text: 'in media://j/1' })).toBeNull();
  expect(listOutputFiles([{ 'media://j/1': true }])).toBeNull();
});
