# find_package(WindlassFunction) gives windlass_function_app(NAME SOURCES ... FILES ...): an application's folder.
get_filename_component(windlass_include "${CMAKE_CURRENT_LIST_DIR}/../../../include" ABSOLUTE)
if(NOT EXISTS ${windlass_include}/windlass/function.h)  # a multiarch library folder is one deeper; so is the source tree's
  foreach(candidate "${CMAKE_CURRENT_LIST_DIR}/../../../../include" "${CMAKE_CURRENT_LIST_DIR}/../include")
    if(EXISTS ${candidate}/windlass/function.h)
      get_filename_component(windlass_include ${candidate} ABSOLUTE)
    endif()
  endforeach()
endif()
set(WINDLASS_FUNCTION_INCLUDE ${windlass_include})

# The application's folder NAME in the build folder: NAME.so, and FILES beside it.
function(windlass_function_app name)
  cmake_parse_arguments(ARG "" "" "SOURCES;FILES" ${ARGN})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  add_library(${name} MODULE ${ARG_SOURCES})
  target_include_directories(${name} SYSTEM PRIVATE ${WINDLASS_FUNCTION_INCLUDE})
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" CXX_VISIBILITY_PRESET hidden
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" LIBRARY_OUTPUT_DIRECTORY ${folder})
  foreach(file IN LISTS ARG_FILES)
    get_filename_component(base ${file} NAME)
    configure_file(${file} ${folder}/${base} COPYONLY)
  endforeach()
endfunction()
