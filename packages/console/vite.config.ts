/** Builds the page into dist/console/; every file beside index.html carries a hash of its content in its name. */
import { fileURLToPath } from 'node:url';
import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { lucideDrawings } from './lucide-drawings.ts';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/ui/',
  plugins: [react(), tailwind(), lucideDrawings()],
  worker: { format: 'es' },
  build: {
    outDir: fileURLToPath(new URL('../../dist/console', import.meta.url)),
    emptyOutDir: true,
    // A `data:` address would need a wider policy.
    assetsInlineLimit: 0,
    target: 'es2023',
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
    modulePreload: { polyfill: false },
  },
});
