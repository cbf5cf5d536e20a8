import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '../theme.css';
import { createQueries } from './api/queries.ts';
import { createConsoleRouter } from './router.tsx';
import { followTheme } from './shared/theme.ts';

followTheme();
const place = document.getElementById('root');
if (place === null) throw new Error('index.html has no #root');
const queries = createQueries();
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={createConsoleRouter(queries)} />
    </QueryClientProvider>
  </StrictMode>,
);
