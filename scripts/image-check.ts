/**
 * `npm run image:check`: the Dockerfile is built by buildah where no registry is in reach, on a base of Debian made
 * from this machine, and server and worker carry out a run out of what was built, as the user of the image.
 */
import { createTemporaryFolder } from '../src/dev/data-folder.ts';
import { findOnPath } from '../src/dev/programs.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { createSupervisor } from '../src/dev/supervisor/supervisor.ts';
import { buildImage, makeBase } from './image/build-image.ts';
import { type Buildah, createBuildah } from './image/buildah.ts';
import { runFromImage } from './image/run-from-image.ts';
import { startBacking } from './package/backing.ts';

async function stage<Result>(title: string, work: () => Promise<Result>): Promise<Result> {
  const from = performance.now();
  const result = await work();
  console.log(`ok  ${title}  ${((performance.now() - from) / 1000).toFixed(1)} s`);
  return result;
}

async function describeImage(buildah: Buildah, image: string): Promise<string> {
  const printed = await buildah.run(['images', '--format', '{{.Name}} {{.Size}}', image]);
  return printed.trim().split('\n').at(-1) ?? '';
}

async function checkAll(program: string): Promise<void> {
  const scratch = createTemporaryFolder('capstan-image-', ['/var/tmp']);
  const printer = createPrinter(process.stdout);
  const supervisor = createSupervisor({ report: printer.report, temporaryFolder: scratch });
  const buildah = createBuildah(program, scratch);
  try {
    await stage('a base of Debian and this Node', () => makeBase(buildah, scratch));
    const image = await stage('built', () => buildImage(buildah));
    console.log(`    ${await describeImage(buildah, image)}`);
    const backing = await stage('a Postgres and a Temporal', () =>
      startBacking(supervisor, scratch, printer.report),
    );
    await stage('migrate, server and worker out of the image carry out a run', () =>
      runFromImage({ buildah, image, scratch, supervisor, backing }),
    );
  } finally {
    await supervisor.stop();
    printer.close();
  }
}

const program = await findOnPath('buildah', process.env);
if (program === null) {
  console.log('NOT checked: there is no buildah here (apt install buildah); the Dockerfile was not built');
} else {
  await checkAll(program).catch((error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
