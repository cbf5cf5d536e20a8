/**
 * `npm test` has each rule once, at the lowest height where it can fail, and one journey through whole processes for
 * each promise. `npm run test:long` sets LONG=1 and adds tests that vary such a journey, repeat it, or take minutes.
 */
export const isLong = process.env.LONG === '1';
