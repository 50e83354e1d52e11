import js from "/work/wt/js/node_modules/@eslint/js/src/index.js";
import globals from "/work/wt/js/node_modules/globals/index.js";
export default [
  js.configs.recommended,
  {
    languageOptions: {
      sourceType: "commonjs",
      globals: {
        ...globals.browser,
        element: "readonly",
        props: "writable",
        watch: "writable",
        trigger: "writable",
        server: "readonly",
      },
    },
    rules: { "max-lines": ["error", 300], "max-len": ["error", { code: 120 }] },
  },
];
