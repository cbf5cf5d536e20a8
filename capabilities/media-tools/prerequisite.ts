import { installPackages, type Prerequisite } from '@capstan/capability';
import { findMediaTools, toolsFolder } from './locate.ts';

const packages = ['@ffmpeg-installer/ffmpeg@1.1.0', '@ffprobe-installer/ffprobe@2.1.2'];

/** ffmpeg and ffprobe; installed from npm into the cache when the machine has none that qualify. */
export const mediaTools: Prerequisite = {
  name: 'ffmpeg',
  check: async ({ cacheDir }) => {
    const tools = await findMediaTools(cacheDir);
    return tools === null ? null : `at ${tools.ffmpeg}`;
  },
  install: async ({ cacheDir, signal }) => {
    await installPackages(toolsFolder(cacheDir), packages, signal);
  },
};
