/** Creates two short clips with sound, and a music bed: real media, small and identical every time. */
import { join } from 'node:path';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { runFfmpeg } from '../../capabilities/media-tools/run-tool.ts';

export interface DemoMedia {
  /** Paths by the name in the example's job. */
  readonly files: Readonly<Record<string, string>>;
}

function clip(pattern: string, toneHz: number, seconds: number): readonly string[] {
  return [
    ...['-f', 'lavfi', '-i', `${pattern}=size=640x360:rate=25:duration=${seconds}`],
    ...['-f', 'lavfi', '-i', `sine=frequency=${toneHz}:sample_rate=48000:duration=${seconds}`],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-shortest'],
  ];
}

const music: readonly string[] = [
  '-f',
  'lavfi',
  '-i',
  'aevalsrc=0.2*sin(2*PI*220*t)*(1+0.5*sin(2*PI*2*t))+0.15*sin(2*PI*277*t)+0.1*sin(2*PI*330*t):s=48000:d=8',
  ...['-c:a', 'aac'],
];

/** @param folder target folder @param cacheDir folder where media tools may have been installed */
export async function makeDemoMedia(folder: string, cacheDir: string): Promise<DemoMedia> {
  const tools = await locateMediaTools(cacheDir);
  const recipes: Readonly<Record<string, readonly string[]>> = {
    'first.mp4': clip('testsrc', 330, 2),
    'second.mp4': clip('testsrc2', 440, 3),
    'music.m4a': music,
  };
  const made = Object.entries(recipes).map(async ([name, recipe]) => {
    const path = join(folder, name);
    await runFfmpeg(tools, [...recipe, '-y', path], AbortSignal.timeout(60_000));
    return [name, path] as const;
  });
  return { files: Object.fromEntries(await Promise.all(made)) };
}
