/**
 * Inputs as authors of pipelines get them wrong, each with the answer of a person who knows the capability. `answer` is
 * the input they would send instead; null: they would ask the author. `outcome` is the most that a repair by the schema
 * may do about it: apply it, only show it, or leave it.
 */
import { capability as audioMix } from '../../../../capabilities/audio-mix/index.ts';
import { capability as concat } from '../../../../capabilities/concat/index.ts';
import { capability as thumbnail } from '../../../../capabilities/thumbnail/index.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { transcodeInput } from './transcode-schema.ts';

export interface BrokenInput {
  readonly capability: keyof typeof inputSchemas;
  /** What went wrong, in a few words; unique. */
  readonly mistake: string;
  readonly input: Json;
  readonly answer: Json;
  readonly outcome: 'applied' | 'shown' | 'left';
}

export const inputSchemas = {
  concat: concat.spec.input,
  'audio-mix': audioMix.spec.input,
  thumbnail: thumbnail.spec.input,
  transcode: transcodeInput,
} satisfies Readonly<Record<string, JsonObject>>;

/** Input and answer: JSON, but for keys that are undefined, which are absent. */
type Case = readonly [
  mistake: string,
  input: object | string,
  answer: object | null,
  outcome: BrokenInput['outcome'],
];

const a = { media_store_path: 'media://job-1/a.mp4' };
const b = { media_store_path: 'media://job-1/b.mp4' };
const music = { media_store_path: 'media://job-1/music.mp3' };
const output_path = 'media://job-1/out.mp4';
const picture = 'media://job-1/out.jpg';

const joined = { clips: [a, b], output_path };
const concatCases: readonly Case[] = [
  ['a singular key', { clip: [a, b], output_path }, joined, 'applied'],
  ['a capital key', { Clips: [a, b], output_path }, joined, 'applied'],
  ['swapped letters', { cilps: [a, b], output_path }, joined, 'applied'],
  ['camelCase', { clips: [a, b], outputPath: output_path }, joined, 'applied'],
  ['kebab-case', { clips: [a, b], 'output-path': output_path }, joined, 'applied'],
  ['a letter too few', { clips: [a, b], ouput_path: output_path }, joined, 'applied'],
  ['no separator', { clips: [a, b], outputpath: output_path }, joined, 'applied'],
  ['a space in the key', { clips: [a, b], 'output_path ': output_path }, joined, 'applied'],
  ['one clip without a list', { clips: a, output_path }, { clips: [a], output_path }, 'applied'],
  [
    'camelCase in one clip',
    { clips: [a, { mediaStorePath: b.media_store_path }], output_path },
    joined,
    'applied',
  ],
  [
    'a typing error in one clip',
    { clips: [a, { media_store_pth: b.media_store_path }], output_path },
    joined,
    'applied',
  ],
  [
    'camelCase in every clip',
    {
      clips: [{ mediaStorePath: a.media_store_path }, { mediaStorePath: b.media_store_path }],
      output_path,
    },
    joined,
    'shown',
  ],
  ['two keys in camelCase', { Clips: [a, b], outputPath: output_path }, joined, 'shown'],
  [
    'five clips wrong',
    { clips: Array.from({ length: 5 }, () => ({ mediaStorePath: a.media_store_path })), output_path },
    { clips: Array.from({ length: 5 }, () => a), output_path },
    'left',
  ],
  [
    'one clip without a list, wrong inside',
    { clips: { path: a.media_store_path }, output_path },
    null,
    'left',
  ],
  ['two keys that may be meant', { clip: [a], cilps: [b], output_path }, null, 'shown'],
  ['clips one by one', { clip1: a, clip2: b, output_path }, null, 'left'],
  ['a numbered key', { clips2: [a, b], output_path }, null, 'left'],
  [
    'references instead of clips',
    { clips: [a.media_store_path], output_path },
    { clips: [a], output_path },
    'left',
  ],
  ['another name for clips', { videos: [a, b], output_path }, joined, 'left'],
  ['no clips at all', { output_path }, null, 'left'],
  ['an empty list', { clips: [], output_path }, null, 'left'],
  ['no output path', { clips: [a, b] }, null, 'left'],
  ['another key close to output_path', { clips: [a, b], input_path: output_path }, null, 'left'],
  ['a file of this machine', { clips: [{ media_store_path: '/tmp/a.mp4' }], output_path }, null, 'left'],
  [
    'a URL for a reference',
    { clips: [{ media_store_path: 'https://a.example/a.mp4' }], output_path },
    null,
    'left',
  ],
  ['another store', { clips: [{ media_store_path: 's3://bucket/a.mp4' }], output_path }, null, 'left'],
  [
    'a reference without its file',
    { clips: [{ media_store_path: 'media://job-1' }], output_path },
    null,
    'left',
  ],
  [
    'white space around a reference',
    { clips: [a, { media_store_path: ` ${b.media_store_path}` }], output_path },
    joined,
    'left',
  ],
  ['an empty reference', { clips: [a], output_path: '' }, null, 'left'],
  ['clips as a text', { clips: JSON.stringify([a, b]), output_path }, joined, 'left'],
];

const mixed = { video: a, music, music_gain_db: -6, output_path };
const audioMixCases: readonly Case[] = [
  ['a number as text', { ...mixed, music_gain_db: '-6' }, mixed, 'applied'],
  ['a number as text with spaces', { ...mixed, music_gain_db: ' -6 ' }, mixed, 'applied'],
  ['a decimal as text', { ...mixed, music_gain_db: '-6.0' }, mixed, 'applied'],
  [
    'null for what may be absent',
    { ...mixed, music_gain_db: null },
    { video: a, music, output_path },
    'applied',
  ],
  ['a little too loud', { ...mixed, music_gain_db: 24 }, { ...mixed, music_gain_db: 20 }, 'shown'],
  ['a little too quiet', { ...mixed, music_gain_db: -72 }, { ...mixed, music_gain_db: -60 }, 'shown'],
  ['a plural key', { videos: a, music, output_path }, { video: a, music, output_path }, 'applied'],
  [
    'swapped letters in a key',
    { video: a, muisc: music, output_path },
    { video: a, music, output_path },
    'applied',
  ],
  [
    'camelCase inside',
    { video: { mediaStorePath: a.media_store_path }, music, output_path },
    { video: a, music, output_path },
    'applied',
  ],
  [
    'upper case inside',
    { video: a, music: { MEDIA_STORE_PATH: music.media_store_path }, output_path },
    { video: a, music, output_path },
    'applied',
  ],
  [
    'typing errors in both',
    { vidoe: a, musci: music, output_path },
    { video: a, music, output_path },
    'shown',
  ],
  [
    'a typing error and a text',
    { ...mixed, music_gain_db: '-6', outputPath: output_path, output_path: undefined },
    mixed,
    'shown',
  ],
  ['a gain in percent', { ...mixed, music_gain_db: 100 }, null, 'shown'],
  ['a gain far too low', { ...mixed, music_gain_db: -600 }, null, 'shown'],
  ['a text out of range', { ...mixed, music_gain_db: '24' }, null, 'left'],
  ['a number with its unit', { ...mixed, music_gain_db: '-6dB' }, mixed, 'applied'],
  ['a number with a spaced unit', { ...mixed, music_gain_db: '-6 dB' }, mixed, 'applied'],
  ['a decimal comma', { ...mixed, music_gain_db: '-6,5' }, null, 'shown'],
  ['a number in words', { ...mixed, music_gain_db: 'quiet' }, null, 'left'],
  ['true for a number', { ...mixed, music_gain_db: true }, null, 'left'],
  ['a list of one number', { ...mixed, music_gain_db: [-6] }, mixed, 'applied'],
  ['an expression left in', { ...mixed, music_gain_db: '{{ job.gain }}' }, null, 'left'],
  ['a reference instead of an object', { ...mixed, video: a.media_store_path }, mixed, 'left'],
  ['a list of videos', { ...mixed, video: [a] }, mixed, 'applied'],
  ['another name for the music', { video: a, audio: music, output_path }, null, 'left'],
  ['no music', { video: a, output_path }, null, 'left'],
  [
    'music of another server',
    { video: a, music: { media_store_path: 'https://m.example/x.mp3' }, output_path },
    null,
    'left',
  ],
];

const framed = { video: a, at_ms: 1_500, width: 320, output_path: picture };
const thumbnailCases: readonly Case[] = [
  ['an integer as text', { ...framed, width: '320' }, framed, 'applied'],
  ['an integer as decimal text', { ...framed, width: '320.0' }, framed, 'applied'],
  ['a time as text', { ...framed, at_ms: '1500' }, framed, 'applied'],
  ['too wide', { ...framed, width: 8_000 }, { ...framed, width: 7_680 }, 'shown'],
  ['too narrow', { ...framed, width: 15 }, { ...framed, width: 16 }, 'shown'],
  [
    'null for an optional width',
    { ...framed, width: null },
    { video: a, at_ms: 1_500, output_path: picture },
    'applied',
  ],
  ['Pascal case', { ...framed, video: undefined, Video: a }, framed, 'applied'],
  ['outputPath', { ...framed, output_path: undefined, outputPath: picture }, framed, 'applied'],
  ['0 for any width', { ...framed, width: 0 }, null, 'shown'],
  ['-1 for any width', { ...framed, width: -1 }, null, 'shown'],
  ['a digit too many', { ...framed, width: 19_200 }, null, 'shown'],
  ['a time before the start', { ...framed, at_ms: -500 }, null, 'shown'],
  ['thousands with a point', { ...framed, at_ms: '1.500' }, null, 'shown'],
  ['two texts', { ...framed, at_ms: '1500', width: '320' }, framed, 'shown'],
  [
    'two spellings of one key',
    { ...framed, output_path: undefined, outputPath: picture, 'output-path': 'media://job-1/b.png' },
    null,
    'shown',
  ],
  ['a width with its unit', { ...framed, width: '320px' }, framed, 'applied'],
  ['a time with its unit', { ...framed, at_ms: '1.5s' }, framed, 'applied'],
  ['a time of day', { ...framed, at_ms: '00:00:01.5' }, framed, 'left'],
  ['thousands with a comma', { ...framed, at_ms: '1,500' }, framed, 'shown'],
  ['half a pixel', { ...framed, width: 320.5 }, null, 'shown'],
  ['half a pixel as text', { ...framed, width: '320.5' }, null, 'left'],
  ['hexadecimal', { ...framed, width: '0x140' }, framed, 'left'],
  ['leading zeros', { ...framed, width: '0320' }, framed, 'left'],
  ['an empty text', { ...framed, width: '' }, null, 'left'],
  ['a word', { ...framed, width: 'auto' }, null, 'left'],
  ['another extension', { ...framed, output_path: 'media://job-1/out.gif' }, null, 'left'],
  ['a capital extension', { ...framed, output_path: 'media://job-1/out.JPG' }, null, 'left'],
  ['a video for a picture', { ...framed, output_path: 'media://job-1/out.mp4' }, null, 'left'],
  ['a list for one path', { ...framed, output_path: [picture] }, framed, 'left'],
  ['a number for the path', { ...framed, output_path: 7 }, null, 'left'],
  ['no video', { output_path: picture }, null, 'left'],
  ['the input as a text', JSON.stringify(framed), framed, 'left'],
];

const coded = {
  source: 'media://job-1/a.mp4',
  codec: 'h264',
  profile: 'main',
  preset: 'fast',
  crf: 23,
  height: 720,
  two_pass: true,
  tags: ['web'],
  not_before: '2024-05-01T10:00:00Z',
  output_path,
};
const { two_pass: _twoPass, tags: _tags, ...few } = coded;
const { height: _height, ...unsized } = coded;
const transcodeCases: readonly Case[] = [
  ['a codec in capitals', { ...coded, codec: 'H264' }, coded, 'applied'],
  ['a codec with a point', { ...coded, codec: 'h.264' }, coded, 'applied'],
  ['a preset with a space', { ...coded, preset: 'fast\n' }, coded, 'applied'],
  ['a preset misspelt', { ...coded, preset: 'meduim' }, { ...coded, preset: 'medium' }, 'applied'],
  ['a height in text', { ...coded, height: '720' }, coded, 'applied'],
  ['a height between steps', { ...coded, height: 721 }, coded, 'shown'],
  ['a height halfway between steps', { ...coded, height: 724 }, null, 'shown'],
  ['true as text', { ...coded, two_pass: 'True' }, coded, 'applied'],
  ['one tag without a list', { ...coded, tags: 'web' }, coded, 'applied'],
  ['a number for a label', { ...coded, label: 2024 }, { ...coded, label: '2024' }, 'applied'],
  ['a time with a line end', { ...coded, not_before: '2024-05-01T10:00:00Z\n' }, coded, 'applied'],
  ['no profile, which has a default', { ...coded, profile: undefined }, coded, 'applied'],
  ['a misspelt optional key', { ...few, twoPass: true }, { ...few, two_pass: true }, 'applied'],
  [
    'a comment',
    { ...coded, label: 'x', priority: 1, comment: 'for the web' },
    { ...coded, label: 'x', priority: 1 },
    'applied',
  ],
  ['an unknown key with null', { ...coded, denoise: null }, coded, 'applied'],
  ['a quality a little too high', { ...coded, crf: 55 }, { ...coded, crf: 51 }, 'shown'],
  ['a key twice, alike', { ...coded, Height: 720 }, coded, 'applied'],
  ['a key twice, not alike', { ...coded, Height: 480 }, null, 'shown'],
  ['two sizes in one text', { ...unsized, size: '1280x720' }, null, 'shown'],
  ['an unknown key that may be a known one', { ...unsized, lines: 720 }, null, 'shown'],
  ['a quality far too high', { ...coded, crf: 230 }, null, 'shown'],
  ['a bound that is not reached', { ...coded, speed: 0 }, null, 'left'],
  ['another generation of a codec', { ...coded, codec: 'h266' }, null, 'left'],
  ['a preset between two', { ...coded, preset: 'fastish' }, null, 'shown'],
  ['a preset of another tool', { ...coded, preset: 'ultra' }, null, 'left'],
  ['1 for true', { ...coded, two_pass: 1 }, null, 'shown'],
  ['yes for true', { ...coded, two_pass: 'yes' }, { ...coded, two_pass: true }, 'applied'],
  ['several tags in a text', { ...coded, tags: 'web, hd' }, { ...coded, tags: ['web', 'hd'] }, 'shown'],
  [
    'a bit rate with its unit',
    { ...coded, sample_rate: '44.1k' },
    { ...coded, sample_rate: 44_100 },
    'applied',
  ],
  ['a version that lost its zero', { ...coded, label: 1.1 }, null, 'shown'],
  ['an unknown key with a reference', { ...coded, poster: 'media://job-1/p.jpg' }, null, 'left'],
  ['an unknown URL', { ...coded, callback: 'https://hooks.example/done' }, null, 'left'],
];

function withoutAbsent(input: object | string | null): Json {
  return JSON.parse(JSON.stringify(input));
}

function casesOf(capability: BrokenInput['capability'], cases: readonly Case[]): readonly BrokenInput[] {
  return cases.map(([mistake, input, answer, outcome]) => ({
    capability,
    mistake,
    outcome,
    input: withoutAbsent(input),
    answer: withoutAbsent(answer),
  }));
}

export const brokenInputs: readonly BrokenInput[] = [
  ...casesOf('concat', concatCases),
  ...casesOf('audio-mix', audioMixCases),
  ...casesOf('thumbnail', thumbnailCases),
  ...casesOf('transcode', transcodeCases),
];
