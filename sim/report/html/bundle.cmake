# cmake -DSOURCE=sim/report/html -DOUTPUT=page.html -DNODE=node -P bundle.cmake
# The page as bundle.mjs puts it together; an empty file where that is not possible, and then --html says what is missing.
file(WRITE ${OUTPUT} "")
if(NOT NODE OR NOT EXISTS ${SOURCE}/node_modules/echarts OR NOT EXISTS ${SOURCE}/node_modules/esbuild)
  return()
endif()
execute_process(COMMAND ${NODE} ${SOURCE}/bundle.mjs ${OUTPUT} RESULT_VARIABLE failed)
if(failed)
  message(WARNING "the report page could not be put together, see above; everything else works")
endif()
