# find_package(WindlassFunction) gives windlass_function_app(NAME source...): a shared object with functions, in an application's folder.
get_filename_component(windlass_include "${CMAKE_CURRENT_LIST_DIR}/../../../include" ABSOLUTE)
if(NOT EXISTS ${windlass_include}/windlass/function.h)  # a multiarch library folder is one deeper; so is the source tree's
  foreach(candidate "${CMAKE_CURRENT_LIST_DIR}/../../../../include" "${CMAKE_CURRENT_LIST_DIR}/../include")
    if(EXISTS ${candidate}/windlass/function.h)
      get_filename_component(windlass_include ${candidate} ABSOLUTE)
    endif()
  endforeach()
endif()
set(WINDLASS_FUNCTION_INCLUDE ${windlass_include})

# The file is NAME.so, because that is what workers look for.
function(windlass_function_app name)
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} SYSTEM PRIVATE ${WINDLASS_FUNCTION_INCLUDE})
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" CXX_VISIBILITY_PRESET hidden BUILD_RPATH "$ORIGIN"
    INSTALL_RPATH "$ORIGIN")
endfunction()
