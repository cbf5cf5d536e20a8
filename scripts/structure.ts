/**
 * Prints the rooms of `src` and `packages` with their files, lines and imports, and the circles among them, types
 * included. `--at COMMIT` reads another commit instead of the checkout, so that two can be compared.
 */
import { parseArgs } from 'node:util';
import { describeHouse, surveyHouse } from './structure/rooms.ts';
import { readSources, readSourcesAt, readSql } from './structure/source.ts';

const folders = ['src', 'packages'];
const { at } = parseArgs({ options: { at: { type: 'string' } } }).values;
const sources = at === undefined ? [...readSources(folders), ...readSql()] : readSourcesAt(at, folders);
const isTest = /^packages\/[^/]+\/test\//;
console.log(describeHouse(surveyHouse(sources.filter(({ file }) => !isTest.test(file)))));
