import { afterEach } from 'vitest';

let hasFailed = false;

/** For the file that begins. Files of one worker share this module. */
export function watchFailures(): void {
  hasFailed = false;
  afterEach(({ task }) => {
    hasFailed ||= task.result?.state === 'fail';
  });
}

export function hasTestFailed(): boolean {
  return hasFailed;
}
