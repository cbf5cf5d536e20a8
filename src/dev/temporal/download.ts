/**
 * A program of its own: downloads the Temporal dev server into the folder in its first argument, with the native core
 * of the Temporal SDK. The core starts the server once as a test, then stops it. It is a separate process, because the
 * core keeps threads and a connection until the process ends.
 */
import { Runtime } from '@temporalio/worker';

const [folder = '.', version = 'default'] = process.argv.slice(2);

async function fetchServer(): Promise<void> {
  const runtime = Runtime.instance();
  const server = await runtime.createEphemeralServer({
    type: 'dev-server',
    exe: {
      type: 'cached-download',
      downloadDir: folder,
      version,
      ttl: 0,
      sdkName: 'sdk-typescript',
      sdkVersion: '1.24.0',
    },
    namespace: 'default',
    ip: '127.0.0.1',
    port: null,
    ui: false,
    uiPort: null,
    dbFilename: null,
    log: { format: 'text', level: 'error' },
    extraArgs: [],
  });
  await runtime.shutdownEphemeralServer(server);
  await runtime.shutdown();
}

await fetchServer().catch((error: Error) => {
  // One line with the end of the chain of causes, which explains most; the parent shows it.
  console.error(error.message.replaceAll('\n', ' ').split(': ').slice(-2).join(': '));
  process.exit(1);
});
