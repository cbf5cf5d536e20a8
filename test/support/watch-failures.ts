/**
 * Before each file of tests: whether one of its tests has failed is asked when its databases are dropped, and what is
 * drawn is as RUNS and SEED say.
 */
import { watchFailures } from './failures.ts';
import { drawAsAsked } from './runs.ts';

watchFailures();
await drawAsAsked();
