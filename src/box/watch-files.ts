import { watch } from 'chokidar';

/** Editors write a file in several steps. */
const quietMs = 200;

/** Calls `onChange` when no file has changed for a moment. @returns stops that */
export function watchFiles(files: readonly string[], onChange: () => void): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch([...files], { ignoreInitial: true });
  watcher.on('all', () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, quietMs);
  });
  return async () => {
    clearTimeout(timer);
    await watcher.close();
  };
}
