/** Each worker has a screen to itself: windows of one screen share focus and clipboard. */
const screens = process.env.VIEWER_SCREENS?.split(",");
const worker = Number(process.env.VITEST_POOL_ID ?? 1);

if (screens) process.env.DISPLAY = screens[(worker - 1) % screens.length];
