/** Before each file of tests: whether one of its tests has failed is asked when its databases are dropped. */
import { watchFailures } from './failures.ts';

watchFailures();
