/**
 * Before each test file: tracks whether one of its tests has failed, for the drop of its databases, and applies RUNS
 * and SEED.
 */
import { watchFailures } from './failures.ts';
import { drawAsAsked } from './runs.ts';

watchFailures();
drawAsAsked();
